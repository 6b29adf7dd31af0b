"""List the book's technical words by the chapter that is first to use them, and mark what nothing explains.

    python tools/list_terms.py

A word is explained by the glossary, or in italics or bold in the chapter that is first to use it.
"""

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from project_facts import ROOT, chapters

sys.path.insert(0, str(ROOT / "book" / "extensions"))
from vit_book.terms import anywhere, forms

# Words of the field that a chapter may use. What chapter 1 asks for (tensors, linear layers, PyTorch) is not
# among them. Plurals are found, too, and what FORMS of `terms` says.
FIELD = """
    ablation, activation checkpointing, AdamW, attention map, attention sink, augmentation, average
    pooling, backward pass, bag of patches, baseline, batch, bfloat16, bottleneck, calibration,
    class token, confidence interval, convolution, correlation, cosine schedule, cosine
    similarity, cross-entropy, curriculum, cutmix, decoder, distillation, dropout, encoder, entropy,
    epoch, feature map, few-shot, fine-tuning, FLOP, frozen, fused kernel, GELU, generalisation,
    gradient clipping, GroupNorm, held-out, hybrid, inductive bias, label smoothing, LayerNorm, learning
    rate, least squares, linear probe, locality, logits, loss, masked autoencoding, masked patch
    prediction, memorise, mixed precision, mixup, MLP, momentum, Muon, nats, nearest neighbour,
    non-linearity, one-hot, optimiser, orthonormal, overfitting, permutation test, pre-norm, pre-training,
    principal components, quantile, receptive field, regularisation, residual path,
    ridge regression, roofline, rollout, schedule, seed, segmentation, SGD, softmax, standard deviation,
    stem, stride, top-1, training mode, validation, variance,
    warm-up, weight decay, whitening
"""


def prose_of(path: Path) -> str:
    """A chapter's words, without code, formulas, options of boxes and addresses of links."""
    text = re.sub(r"\A---\n.*?^---\n", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    code = r"^```\{code-cell\}.*?^```$|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|^:\w+:.*?$|\]\([^)]*\)"
    return re.sub(code, " ", text, flags=re.DOTALL | re.MULTILINE)


def words_by_chapter(words: Iterable[list[str]], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Which words each chapter is the first to use; a word is a list of its forms.

    >>> words_by_chapter([["seed", "seeds"], ["epoch"]], {"08": "Two seeds.", "09": "An epoch, a seed."})
    {'08': ['seed'], '09': ['epoch']}
    """
    found: dict[str, list[str]] = {name: [] for name in texts}
    for all_forms in words:
        uses = re.compile(rf"(?<![\w-])(?:{'|'.join(map(anywhere, all_forms))})(?![\w-])")
        first = next((name for name, text in texts.items() if uses.search(text)), None)
        if first is not None:
            found[first].append(all_forms[0])
    return found


def is_explained(word: str, text: str, glossary: Iterable[str]) -> bool:
    """A word of the glossary, or one in italics or bold in the chapter that is first to use it."""
    inside = "|".join(re.escape(form) for form in forms(word))
    return word.lower() in glossary or bool(
        re.search(rf"\*[^*\n]{{0,30}}(?:{inside})[^*\n]{{0,30}}\*", text, re.IGNORECASE)
    )


def unexplained(
    words: Iterable[str], texts: Mapping[str, str], glossary: Iterable[str]
) -> dict[str, list[str]]:
    """By chapter of first use, the words that neither the chapter nor the glossary explains."""
    known = {form.lower() for term in glossary for form in forms(term)}
    first = words_by_chapter(map(forms, words), texts)
    for name, used in first.items():
        first[name] = [word for word in used if not is_explained(word, texts[name], known)]
    return {name: used for name, used in first.items() if used}


def words_of_the_field() -> list[str]:
    """The words of FIELD."""
    return [word.strip() for word in textwrap.dedent(FIELD).replace("\n", " ").split(",")]


def terms_of_the_glossary() -> list[str]:
    """The terms of the glossary, as they are written there."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^(\S.*)(?=\n(?:\S.*\n)*  \S)", text.partition("```{glossary}")[2], re.MULTILINE)


def main() -> None:
    """Run from the command line."""
    texts = {path.stem: prose_of(path) for path in chapters(ROOT)}
    gaps = unexplained(words_of_the_field(), texts, terms_of_the_glossary())
    for name, used in words_by_chapter(map(forms, words_of_the_field()), texts).items():
        marked = [f"{word} (unexplained)" if word in gaps.get(name, ()) else word for word in used]
        print(f"{name}: {', '.join(marked) or 'none'}")


if __name__ == "__main__":
    main()

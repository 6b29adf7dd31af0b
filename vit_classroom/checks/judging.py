"""Judge a function or a class by what it does on random input: values, gradients, what it leaves behind."""

import contextlib
import inspect
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from vit_classroom.checks import sandbox
from vit_classroom.checks.report import Case, Piece, Verdict, first_of, randomise, same, verdict
from vit_classroom.checks.sandbox import (
    Box,
    CheckFailed,
    Outcome,
    box_for,
    nothing_left_behind,
    place_of,
    takes,
)
from vit_classroom.checks.starts import Start

# What is said before an error: the first whose pattern fits it.
TROUBLES = {
    "^RecursionError": "it calls itself without an end",
    "^NotImplementedError.*not implemented for '": (
        "it cannot be done with this type of number: look at .dtype there, and put brackets round a "
        "comparison beside & or |"
    ),
    "^NotImplementedError.*missing the required .forward": "forward is not there: mistyped, or not indented",
    "^NameError": (
        "a name is not known there: mistyped, from a cell that was not run, or self is missing before it"
    ),
    "^UnboundLocalError": (
        "a name has no value there yet: it gets one further down, or in a loop or an `if` that is passed by"
    ),
    "expected Tensor .* but got (int|float)": (
        "a plain number stands there in place of a tensor: hand in torch.tensor([5]), not 5"
    ),
    "^AttributeError: '(int|float)' object": (
        "a plain number stands there, which has no methods of a tensor: take math.sqrt or ** 0.5, or make a "
        "tensor of it"
    ),
    "^AttributeError.*NoneType": "something is None there: a return is missing, or a layer was not made",
    "^AttributeError": "what it asks for is not there: it is mistyped, or not made in __init__",
    "^ZeroDivisionError": "it divides by 0 for this input",
    "^(IndexError|KeyError)": "a place is not there: an index too large, or an axis missing",
    r"^RuntimeError.*numpy\(\)": "it leaves PyTorch for NumPy, where gradients end",
    "^RuntimeError.*(dtype|scalar type)": "two types of number meet: look at .dtype there",
    "^TypeError": "something gets a kind of value there that it cannot take",
    "^ValueError.*values to unpack": (
        "there are more or fewer parts than names; a tensor comes apart along its first axis"
    ),
    "Could not infer sizes": "einops has to be told more sizes, by name",
    "(?i)shape|size|dimension|channels|einops|axis": "shapes do not fit there: print them just before",
    "": "it cannot be computed for this input",
}
# An error that a line of the reader's own raises:
UNWRITTEN = re.compile(r"^NotImplementedError.* \(in line \d+(\)$|: .*\braise\b)", re.DOTALL)
COPIED = "that is the package's own 🙂 It agrees with itself. Now write yours"
UNCHANGED = "that is the book's answer as it stands, and something else is asked."
Check = Callable[..., None]
"""A check is called with what a reader wrote, `seed=N` to draw the same again, and `name=` for messages."""
Arguments = tuple[Any, ...] | Mapping[str, Any]
Draw = Callable[..., Case]
"""Draws one input, works out what must come of it and what well-known mistakes would give."""
Parts = dict[str, float]
"""How much of each part of a piece is right, from 0 to 1, in the order in which a check looks at them."""
RAISES = "\n\nRaises:\n    CheckFailed: it differs; the message names the mistake."


class Instead(NamedTuple):
    """What is asked in place of the package's own: what gives the right results, and what was not asked.

    The others stand by a sentence that says so. All are functions, or all classes.
    """

    answer: Callable[..., Any]
    others: Mapping[str, Callable[..., Any]]


def check(piece: Piece, described: Callable[..., Any], judge: Callable[..., None]) -> Check:
    """Make a check, with the name and docstring of `described`: it leaves nothing behind.

    With `.varied(instead)` it becomes one of another task, on the same inputs.
    """

    def checked(theirs: Any, /, *, seed: int | None = None, name: str = "") -> None:
        drawn = random.SystemRandom().randrange(2**31) if seed is None else seed
        with nothing_left_behind():
            torch.default_generator.manual_seed(drawn)  # no GPU's: that would stay so
            try:
                judge(theirs)
            except CheckFailed as failure:
                said = str(failure)
                if name and said.startswith(f"{piece.name}: "):  # what it is called where it is asked for
                    said = said.replace(piece.name, name, 1).replace(f"`{piece.name}`", f"`{name}`")
                    failure.args = (said,)
                failure.add_note(f"checks.{described.__name__}(..., seed={drawn}) draws the same again.")
                raise failure.with_traceback(None) from None
        agree = "values and gradients" if piece.gradients else "values"
        print(f"✓ {name or piece.name}: {agree} agree with the package")

    for name in ("__module__", "__name__", "__qualname__"):
        setattr(checked, name, getattr(described, name))
    checked.__doc__ = inspect.cleandoc(described.__doc__ or "") + RAISES
    vars(checked)["piece"] = piece
    vars(checked)["varied"] = lambda instead: check(piece, described, partial(judge, instead=instead))
    return checked


def _varied(piece: Piece, cases: Sequence[Case], instead: Instead) -> list[Case]:
    """Return cases of which something else has to come than the package's."""

    def of(function: Callable[..., Any], case: Case) -> Any:
        return first_of(piece, function(*_copies(case.inputs)))

    return [
        replace(
            case,
            expected=of(instead.answer, case),
            mistakes={said: of(other, case) for said, other in instead.others.items()},
            others=(),
        )
        for case in cases
    ]


def _called(cls: Callable[..., nn.Module], given: Arguments) -> nn.Module:
    return cls(**given) if isinstance(given, Mapping) else cls(*given)


def function_check(
    result: str,
    where: str,
    ours: Callable[..., Tensor],
    settings: Iterable[object] | Callable[[], Iterable[object]],
    *,
    answers: Sequence[Callable[..., Any]] = (),
    call: str = "",
    exact: bool = False,
    number: bool = False,
    gradients: bool = True,
) -> Callable[[Draw], Check]:
    """Make a check of a function, which has the name of the check.

    Args:
        result, where, exact, number, gradients: see `Piece`; a plain number is exact and has no gradients.
        ours: gives the right results, and has the parameters that the reader's function has.
        settings: what the decorated function draws an input for, or what gives them.
        answers: more functions of the package that the reader may not call; ours is one wherever it is the
            package's own.
        call: how the function is called, where `ours` has other parameters.
    """
    forbidden = [*answers, *([ours] if ours.__module__.startswith("vit_from_scratch") else [])]

    def decorated(draw: Draw) -> Check:
        taken = inspect.signature(ours).parameters.values()
        names = ", ".join(one.name for one in taken if one.default is one.empty)
        call_ = call or f"{draw.__name__}({names})"
        flows = gradients and not number
        piece = Piece(call_, result, where, exact=exact or number, number=number, gradients=flows)

        def judge(function: object, instead: Instead | None = None) -> None:
            cases = _all_drawn(draw, settings() if callable(settings) else settings)
            if instead is not None:
                cases = _varied(piece, cases, instead)
            judge_function(piece, function, instead.answer if instead else ours, cases, forbidden)

        return check(piece, draw, judge)

    return decorated


def class_check(
    call: str,
    result: str,
    where: str,
    reference: Callable[..., nn.Module],
    arguments: Arguments | list[Arguments],
    settings: Sequence[object],
    *,
    starts: Sequence[Start] = (),
    may_drop: bool = False,
    also: Callable[[Piece, Any, Any], None] | None = None,
) -> Callable[[Draw], Check]:
    """Make a check of a class of layers; the decorated function draws an input for our module.

    Args:
        call, result, where: see `Piece`.
        reference: makes ours of the arguments, with random weights.
        arguments: what the class is called with; of a list each is tried.
        settings: what an input is drawn for.
        starts: how a module begins, with its own first weights.
        may_drop: whether it may drop values while it trains.
        also: judges further, given the piece, the class and our module.
    """
    piece = Piece(call, result, where)

    def decorated(draw: Draw) -> Check:
        def judge(cls: object, instead: Instead | None = None) -> None:
            tried: list[Arguments] = []
            every = arguments if isinstance(arguments, list) else [arguments]
            for given in every:
                ours = _called(reference, given)
                cases = partial(_all_drawn, draw, settings, ours)
                if instead is not None:
                    drawn, ours = cases(), randomise(_called(instead.answer, given))
                    others = {said: _called(other, given).eval() for said, other in instead.others.items()}
                    for other in others.values():
                        _give_weights(other, ours)
                    cases = partial(_varied, piece, drawn, Instead(ours, others))
                hint = (
                    f"they are right for {tried[0]} and not for {given}, so an argument is not used"
                    if tried
                    else ""
                )
                try:
                    judge_module(piece, cls, given, ours, cases, starts, may_drop, hint)
                except CheckFailed as failure:
                    done = len(tried) / len(every)
                    failure.parts = {name: done + (1 - done) * one for name, one in failure.parts.items()}
                    raise
                tried.append(given)
                if also is not None:
                    with _judged(piece, "parameters") as right:
                        right |= {"parameters": 1.0, "shape": 1.0}
                        also(piece, cls, ours)

        return check(piece, draw, judge)

    return decorated


def _all_drawn(draw: Draw, settings: Iterable[Any], *ours: nn.Module) -> list[Case]:
    """Draw an input for each setting; what draws takes a setting as a whole, or its parts one by one."""
    whole = len(inspect.signature(draw).parameters) == len(ours) + 1
    return [draw(*ours, setting) if whole else draw(*ours, *setting) for setting in settings]


@contextlib.contextmanager
def _judged(piece: Piece, *first: str) -> Iterator[Parts]:
    """Give the parts of a piece, to fill in as they are found right; a failure takes them along."""
    shape, gradients = () if piece.number else ("shape",), ("gradients",) if piece.gradients else ()
    right = dict.fromkeys([*first, *shape, "values", *gradients], 0.0)
    try:
        yield right
    except CheckFailed as failure:
        failure.parts = {} if any(said in str(failure) for said in (COPIED, UNCHANGED)) else right
        raise


def judge_function(
    piece: Piece,
    function: object,
    ours: Callable[..., Tensor],
    cases: Sequence[Case],
    answers: Sequence[Callable[..., Any]],
) -> None:
    """Judge a reader's function by all cases; it may not call one of the package's `answers`."""
    _require_function(piece, function)
    assert callable(function)
    box = box_for(function, [answer.__code__ for answer in answers])
    with _judged(piece) as right:
        _judge_values(piece, box, function, cases, piece.arguments, right)
        for case in cases[:2] if piece.gradients else ():
            _judge_gradients(piece, box, function, ours, case, {}, {})


def judge_module(
    piece: Piece,
    cls: object,
    arguments: Arguments,
    reference: nn.Module,
    cases: Callable[[], Sequence[Case]],
    starts: Sequence[Start] = (),
    may_drop: bool = False,
    hint: str = "",
) -> None:
    """Judge a reader's class, called with `arguments`, with the weights of our `reference`.

    `starts` look at the reader's module as it was made, with its own first weights. Unless it `may_drop`
    values, it has to give the same while it trains. A `hint` is said when nothing else is known.
    """
    if isinstance(cls, nn.Module):
        raise piece.failed(f"it got an object: hand in the class itself, as `{piece.name}`, not called")
    _require_function(piece, cls)
    assert callable(cls)
    box = box_for(cls, [type(reference).forward.__code__])
    positional, named = ((), arguments) if isinstance(arguments, Mapping) else (arguments, {})
    theirs = _value_of(piece, box.call(cls, *positional, **named), cls, positional, named)
    if not isinstance(theirs, nn.Module):
        raise piece.failed(f"it is a {type(theirs).__name__}: expected a subclass of nn.Module")
    if lazy := [key for key, value in theirs.state_dict().items() if is_lazy(value)]:
        raise piece.failed(f"{lazy[0]} has no shape yet, as in a Lazy layer: give the layer its sizes")
    with _judged(piece, "parameters") as right:
        try:
            made = (named or dict(zip(piece.arguments, positional, strict=False))).items()
            label = ", ".join(f"{name} {value}" for name, value in made)
            _require_parameters(piece, theirs, reference, label)
            for start in starts:
                start(piece, theirs)
        except CheckFailed:
            _give_weights(theirs, reference)
            with contextlib.suppress(Exception):  # what came first is said; the other parts count, too
                _judge_calls(piece, box, theirs, reference, cases(), may_drop, hint, right)
                right["gradients"] = 1.0
            raise
        right["parameters"] = 1.0
        theirs.load_state_dict(reference.state_dict(), strict=False)
        _judge_calls(piece, box, theirs, reference, cases(), may_drop, hint, right)


def _judge_calls(
    piece: Piece,
    box: Box,
    theirs: nn.Module,
    reference: nn.Module,
    tried: Sequence[Case],
    may_drop: bool,
    hint: str,
    right: Parts,
) -> None:
    """Judge what a reader's module, which has our weights, makes of all cases."""
    theirs.eval()
    known = reference.state_dict()
    before = {name: value.clone() for name, value in theirs.state_dict().items() if name in known}

    def require_still() -> None:
        now = theirs.state_dict()
        moved = [name for name, old in before.items() if name not in now or not torch.equal(now[name], old)]
        if moved:
            told = "only the optimiser may; keep what is made of them under another name"
            raise piece.failed(f"a call changes its own weights ({moved[0]}): {told}")

    names = list(inspect.signature(reference.forward).parameters)
    _judge_values(piece, box, theirs, tried, names, right, require_still, hint)
    require_still()
    _judge_training(piece, box, theirs.train(), tried[0], may_drop, names)
    theirs.eval()
    of_theirs, of_ours = (dict(module.named_parameters()) for module in (theirs, reference))
    both = {name: value for name, value in of_theirs.items() if name in of_ours and value.requires_grad}
    for case in tried[:2]:
        _judge_gradients(piece, box, theirs, reference, case, both, of_ours)


def _judge_training(
    piece: Piece, box: Box, theirs: nn.Module, case: Case, may_drop: bool, names: Sequence[str]
) -> None:
    """See that a module that trains gives the same as in evaluation, but for values that it drops."""

    def called() -> object:
        given = _copies(case.inputs)
        outcome = box.call(theirs, *given)
        label = f"{case.label(names)}, in training"
        return first_of(piece, _value_of(piece, outcome, theirs, given, {}, label))

    got = called()
    seen = verdict(piece, got, case, "")
    if seen is None:
        return
    if not may_drop:
        raise piece.failed(
            "while it trains it gives something else than in evaluation: leave dropout out, "
            f"{piece.name} has none"
        )
    sound = isinstance(got, Tensor) and got.shape == case.expected.shape and bool(got.isfinite().all())
    if sound and any(_differ(got, called()) for _ in range(7)):  # a dropout of little drops the same at times
        return
    said = min(seen.sentences) if seen.sentences else seen.described(seen.hints)
    told = "it is right in evaluation, but not while it trains, where dropout alone may change a value"
    raise piece.failed(f"{told}: {said}", numbers=seen.numbers)


@torch.no_grad()
def _give_weights(theirs: nn.Module, reference: nn.Module) -> None:
    """Give our weights to a module that has other parameters; a bias that only one has becomes 0 there."""
    got, ours = theirs.state_dict(), reference.state_dict()
    if [value.shape for value in got.values()] == [value.shape for value in ours.values()]:
        ours = dict(zip(got, ours.values(), strict=True))  # other names
    for name in [*got, *ours]:
        if name in got and name in ours and got[name].shape == ours[name].shape:
            got[name].copy_(ours[name])
        elif name.endswith("bias"):
            got.get(name, ours.get(name, torch.zeros(()))).zero_()


def _require_function(piece: Piece, given: object) -> None:
    if isinstance(given, Tensor):
        raise piece.failed(f"it got a tensor: hand in `{piece.name}` itself, not its result")
    if not callable(given):
        kind = "None" if given is None else f"a {type(given).__name__}"
        raise piece.failed(f"it got {kind}: hand in `{piece.name}` itself, a function or a class")


def _value_of(
    piece: Piece,
    outcome: Outcome,
    function: Callable[..., Any],
    arguments: Sequence[object],
    named: Mapping[str, object],
    label: str = "",
) -> object:
    """Return what a call returned; put into words what it did instead."""
    if outcome.late:
        limit = f"{sandbox.LIMIT_SECONDS:g} seconds"
        raise piece.failed(f"it did not come to an end within {limit}: does a loop never stop?")
    if outcome.copied:
        raise piece.failed(COPIED)
    error = outcome.error
    if error is None:
        return outcome.value
    if isinstance(error, SystemExit):
        raise piece.failed("it calls exit(): return a result instead")
    if isinstance(error, TypeError) and not takes(function, *arguments, **named):
        raise piece.failed(f"it cannot be called as {piece.call} ({error})") from None
    if "before Module.__init__" in str(error):
        raise piece.failed("__init__ must call super().__init__() first, before it keeps any layer") from None
    raised, place = f"{type(error).__name__}: {error}", place_of(error)
    why = next(said for pattern, said in TROUBLES.items() if re.search(pattern, raised))
    if UNWRITTEN.match(raised + place):
        why = "it is not written yet"
    raise piece.failed(f"{why}. It stopped with {raised}{place}", label=label) from None


def _copies(inputs: Sequence[object]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in inputs]


def _with_leaves(inputs: Sequence[object]) -> tuple[list[Any], list[Tensor]]:
    """Copy inputs, and return also those that a gradient can reach."""
    copies = _copies(inputs)
    leaves = [value for value in copies if isinstance(value, Tensor) and value.is_floating_point()]
    return copies, [value.requires_grad_() for value in leaves]


def _judge_values(
    piece: Piece,
    box: Box,
    function: Callable[..., Any],
    cases: Sequence[Case],
    names: Sequence[str],
    right: Parts,
    require_still: Callable[[], None] | None = None,
    hint: str = "",
) -> None:
    """Hold the results for all inputs against ours, and see that inputs stay what they were.

    What has weights is called twice, and `require_still` sees that they stay what they were.
    """
    found: list[tuple[Case, Verdict]] = []
    failures: list[CheckFailed] = []
    changed = False
    if not any(case.expected.ndim for case in cases):  # any number has the shape of one
        right.pop("shape", None)
    for case in cases:
        given = _copies(case.inputs)
        outcome = box.call(function, *given)
        try:
            got = first_of(piece, _value_of(piece, outcome, function, given, {}, case.label(names)))
        except CheckFailed as failure:
            if outcome.late or outcome.copied:
                raise
            failures.append(failure)
            continue
        changed |= any(
            isinstance(old, Tensor) and not torch.equal(value, old)
            for value, old in zip(given, case.inputs, strict=True)
        )
        seen = verdict(piece, got, case, outcome.printed)
        if "shape" in right and (seen is None or _is_tried(got, case)):
            right["shape"] += 1 / len(cases)
        right["values"] += (seen is None) / len(cases)
        if require_still is not None:
            again = _copies(case.inputs)
            second = first_of(piece, box.call(function, *again).value)
            if _differ(got, second):
                require_still()
                raise piece.failed(
                    "two calls in evaluation differ: is dropout still on? nn.Dropout is off after eval(), "
                    "and F.dropout needs training=self.training",
                    label=case.label(names),
                )
        if seen is not None:
            found.append((case, seen))
    in_place = "it changes its input, which belongs to the caller: make something new (`z = z + x`, not +=)"
    if changed:
        right["values"] /= 2
    fitting = set.intersection(*(seen.sentences for _, seen in found)) if found else set()
    known = fitting and failures and "with IndexError" in str(failures[0])  # the mistake explains it
    if failures and not known:
        raise failures[0]
    if not found:
        if changed:
            raise piece.failed(in_place)
        return
    case, first = found[0]
    wrong = [case for case, _ in found]
    if not fitting:
        plain = [pair for pair in found if pair[1].plain]
        case, first = (plain or found)[0]
        hints = [hint for hint in first.hints if all(hint in seen.hints for _, seen in plain)]
        if _differ(*(first_of(piece, box.call(function, *_copies(case.inputs)).value) for _ in range(2))):
            hints = ["two calls with one input differ: something in it is random, as a dropout is"]
        known = [*_only_where(cases, wrong, names), hint, *hints]
        fitting = first.sentences or {first.described([one for one in known if one])}
    sentences = sorted(fitting)
    if changed:
        named = f": {sentences[0]}" if first.sentences else ""
        sentences = [f"{in_place}. The result is wrong as well{named}"]
    count = len(cases) - len(found) - len(failures)
    label = case.label(names) + (f"; {count} of {len(cases)} inputs came out right" if count else "")
    raise piece.failed(*sentences, label=label, numbers=first.numbers)


def _is_tried(got: object, case: Case) -> bool:
    """Say whether a result has the right shape, and is neither an input nor one number all over."""
    if not isinstance(got, Tensor) or got.shape != case.expected.shape or not got.is_cpu or not got.numel():
        return False
    known = [value for value in case.inputs if isinstance(value, Tensor)]
    known += [got.flatten()[0].expand_as(got)] if len(case.expected.unique()) > 1 else []
    return not any(torch.equal(got, value) for value in known)


def _differ(one: object, other: object) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or not one.is_cpu:
        return False
    return not torch.equal(one.nan_to_num(), other.nan_to_num())


def _only_where(cases: Sequence[Case], wrong: Sequence[Case], names: Sequence[str]) -> list[str]:
    """Say what the inputs that came out right have in common, and no other input has."""
    apart = [_facts(case, names, cases) for case in wrong]
    alike = [_facts(case, names, cases) for case in cases if not any(case is one for one in wrong)]
    if not alike:
        return []
    single = [fact for fact in set.intersection(*apart) - set.union(*alike) if fact.endswith("has length 1")]
    if single:
        return [f"they are wrong where {' and '.join(sorted(single))}, and right elsewhere"]
    facts = sorted(set.intersection(*alike) - set.union(*apart))
    said = f"they are right only where {' and '.join(facts[:3])}, which is taken for granted"
    return [said] if facts else []


def _facts(case: Case, names: Sequence[str], cases: Sequence[Case]) -> set[str]:
    """Describe an input; a float that no other input of the same place has was drawn, and says nothing."""
    facts = set()
    for place, (name, value) in enumerate(zip(names, case.inputs, strict=False)):
        if isinstance(value, Tensor):
            facts |= {f"{name} has {value.ndim} axes"} if value.ndim else set()
            facts |= {f"axis {n} of {name} has length 1" for n, count in enumerate(value.shape) if count == 1}
            facts |= {f"{name} is square"} if value.ndim > 2 and value.shape[-1] == value.shape[-2] else set()
        elif (
            not isinstance(value, float)
            or sum(one.inputs[place : place + 1] == (value,) for one in cases) > 1
        ):
            facts.add(f"{name} is {value}")
    return facts


def _judge_gradients(
    piece: Piece,
    box: Box,
    function: Callable[..., Any],
    ours: Callable[..., Any],
    case: Case,
    of_theirs: Mapping[str, nn.Parameter],
    of_ours: Mapping[str, nn.Parameter],
) -> None:
    """Send a random gradient back through both, and compare what arrives at inputs and parameters."""
    copies, wanted = _with_leaves(case.inputs)
    given = [value * 1 if isinstance(value, Tensor) and value.requires_grad else value for value in copies]
    outcome = box.call(function, *given)
    got = first_of(piece, _value_of(piece, outcome, function, given, {}))
    assert isinstance(got, Tensor)
    cut = "detach(), .data, .item(), torch.no_grad() or a tensor made anew cuts the path"
    if not got.requires_grad:
        raise piece.failed(f"the result is right, and no gradient can flow back from it: {cut}")
    upstream = torch.randn(got.shape)
    names = [f"input {number + 1}" for number in range(len(wanted))] + list(of_theirs)
    try:
        wanted += of_theirs.values()
        received = torch.autograd.grad((got * upstream).sum(), wanted, allow_unused=True)
    except RuntimeError as error:
        raise piece.failed(
            "the result is right, and the way back stops with an error: something that the gradient needs "
            f"was changed in place (`z += x` in place of `z = z + x`?). PyTorch says: {error}"
        ) from None
    copies, targets = _with_leaves(case.inputs)
    right = first_of(piece, ours(*copies))
    assert isinstance(right, Tensor)
    targets += [of_ours[name] for name in of_theirs]
    expected = torch.autograd.grad((right * upstream).sum(), targets, allow_unused=True)
    for name, gradient, should in zip(names, received, expected, strict=True):
        if should is None:
            continue
        if gradient is None or (not gradient.any() and should.any()):
            raise piece.failed(f"the result is right, and {name} receives no gradient: {cut}")
        if not gradient.isfinite().all():
            raise piece.failed(f"the result is right, and the gradient of {name} is not finite")
        scale = max(should.abs().max().item(), 1e-6)
        if not same(gradient / scale, should / scale) and (gradient - should).abs().max() > 1e-3 * scale:
            said = f"the result is right, and the gradient of {name} is not"
            raise piece.failed(f"{said}: on a part of the way {cut}")


def _require_parameters(piece: Piece, theirs: nn.Module, reference: nn.Module, label: str) -> None:
    """See that a reader's module has our parameters, all of them trained; buffers of its own are free."""
    expected = {key: tuple(value.shape) for key, value in reference.state_dict().items()}
    own = {name for name, _ in theirs.named_buffers(remove_duplicate=False)} - set(expected)
    got = {key: tuple(value.shape) for key, value in theirs.state_dict().items() if key not in own}
    trained = dict(theirs.named_parameters(remove_duplicate=False))
    if got != expected:
        lines = _first([f"  missing    {key} {expected[key]}" for key in expected if key not in got])
        lines += _first([f"  unexpected {key} {got[key]}" for key in got if key not in expected])
        lines += _first(
            [
                f"  {key} has shape {got[key]}, expected {expected[key]}"
                for key in expected
                if key in got and got[key] != expected[key]
            ]
        )
        why = {_why_missing(theirs, key) for key in expected if key not in got}
        why |= {_why_unexpected(trained, key, expected) for key in got if key not in expected}
        told = ["it has other parameters than it must:", *lines, *_first(sorted(why - {""}), 2)]
        raise piece.failed("\n".join(told), label=label)
    owners: dict[int, str] = {}
    for key, parameter in reference.named_parameters():
        if key not in trained:
            raise piece.failed(f"{key} is a buffer: make it an nn.Parameter, or it is never trained")
        if not trained[key].requires_grad:
            raise piece.failed(f"{key} is frozen (requires_grad=False): it must be trained")
        if trained[key].dtype != parameter.dtype:
            raise piece.failed(f"{key} is {trained[key].dtype}: expected {parameter.dtype}")
        first = owners.setdefault(id(trained[key]), key)
        if first != key:
            raise piece.failed(
                f"{first} and {key} are one and the same parameter: `[layer] * L` repeats one object; make a "
                "new layer for each place"
            )


def _first(lines: list[str], most: int = 6) -> list[str]:
    """Return the first lines, and how many more: a wrong name in a block is wrong in every block."""
    return lines if len(lines) <= most else [*lines[:most], f"  ... and {len(lines) - most} more like these"]


def _why_missing(module: object, key: str) -> str:
    """Say why a parameter that is there by name is not seen: a list of layers, or a plain tensor."""
    for name in key.split("."):
        if isinstance(module, list | tuple):
            return "  (layers in a Python list are not seen: use nn.ModuleList)"
        module = getattr(module, name, None)
    if isinstance(module, Tensor):
        return f"  ({key} is a plain tensor: wrap it in nn.Parameter, or it is neither trained nor saved)"
    return ""


def _why_unexpected(trained: Mapping[str, nn.Parameter], key: str, expected: Iterable[str]) -> str:
    """Say which required layer an unexpected one repeats: the same object, or one nested under its name."""
    layer = key.rpartition(".")[0] or key
    for other in expected:
        asked = other.rpartition(".")[0] or other
        if key in trained and trained[key] is trained.get(other):
            return f"  ({layer} and {asked} are one layer under two names: keep {asked} alone)"
        if other in trained and other.endswith(f".{key}"):
            return f"  (there is {asked} already: leave {layer} out)"
    return ""

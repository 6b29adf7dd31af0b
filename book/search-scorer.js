// How results of the search are ordered: first the chapter that is called so, then sections of that title, of chapters
// before those of other pages (only titles and names of the package have an anchor), then the glossary, then chapters
// with these words, in the book's order, and the reference at the end.

const ASKED = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const name = title.replace(/^\d+\. /, "").toLowerCase();
    if (docname.startsWith("notebooks/")) {
      const late = Number(docname.match(/\/(\d+)_/)?.[1] ?? 0) / 100;
      return score - late + (anchor ? 140 : name === ASKED ? 300 : name.startsWith(ASKED) ? 160 : 40);
    }
    if (docname.startsWith("book/api/") || /index$/.test(docname)) return score - 20;
    return score + (anchor && !description && docname !== "book/glossary" ? 100 : 0);
  },
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

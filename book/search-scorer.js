// How results of the search are ordered: first the chapter that is called so, then chapters' sections of that title
// (only titles and names of the package have an anchor), then the glossary, then chapters with these words, and the
// reference at the end.

const ASKED = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const name = title.replace(/^\d+\. /, "").toLowerCase();
    if (docname.startsWith("notebooks/")) {
      return score + (anchor ? 140 : name === ASKED ? 300 : name.startsWith(ASKED) ? 160 : 40);
    }
    if (docname.startsWith("book/api/") || /index$/.test(docname)) return score - 20;
    return score;
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

// How results of the search are ordered: first a chapter's section of that title (only titles and names of the
// package have an anchor), then the glossary, then chapters with these words, and the reference at the end.

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    if (docname.startsWith("notebooks/")) return score + (anchor ? 140 : 40);
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

// How results of the search are ordered: a section of that title first, chapters before the reference.

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    if (docname.startsWith("notebooks/")) return score + 40;
    if (docname.startsWith("book/api/") || /index$/.test(docname)) return score - 20;
    return score;
  },
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 100,
  partialTitle: 12,
  term: 5,
  partialTerm: 2,
};

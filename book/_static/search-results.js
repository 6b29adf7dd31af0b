// What a result shows of its page: the article's words where all that was asked for stands together, without buttons,
// and formulas without their markup; of a term of the glossary, what it means.

document.addEventListener("DOMContentLoaded", () => {
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.body;
    const found = (anchor && article.querySelector(`#${CSS.escape(anchor.slice(1))}`)) || article;
    if (found.matches(".glossary dt")) {
      const meaning = found.closest("dl").querySelector(`#${CSS.escape(found.id)} ~ dd`);
      return `${found.firstChild.textContent}: ${meaning.querySelector("p").textContent}`;
    }
    const other = ".headerlink, script, style, svg, aside, .strip, .opener-part, figcaption, .tag_hide-input .cell_input";
    for (const element of found.querySelectorAll(other)) {
      element.remove();
    }
    for (const formula of found.querySelectorAll("span.math, div.math")) {
      formula.textContent = formula.textContent
        .replace(/\\[([)\]]/g, "")
        .replace(/\\(?:text|mathbb|mathrm)\{([^{}]*)\}/g, "$1")
        .replace(/\\sqrt\{([^{}]*)\}/g, "√$1")
        .replace(/\\tag\{[^{}]*\}/g, "")
        .replace(/\\(?:top|q?quad)\b/g, " ")
        .replace(/\\cdot\b/g, "·")
        .replace(/\\times\b/g, "×")
        .replace(/[\\{}]/g, "");
    }
    return found.textContent;
  };
  // The last of the words is where an excerpt begins.
  const asked = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  const cut = Search.makeSearchSummary;
  Search.makeSearchSummary = (text, keywords, anchor) => cut(text, [...keywords, asked], anchor);
});

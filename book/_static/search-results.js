// What a result shows of its page: the article's words, without buttons, and formulas without their markup.

document.addEventListener("DOMContentLoaded", () => {
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.body;
    const found = (anchor && article.querySelector(anchor)) || article;
    const other = ".headerlink, script, style, svg, aside, .strip, .opener-part, figcaption";
    for (const element of found.querySelectorAll(other)) {
      element.remove();
    }
    for (const formula of found.querySelectorAll("span.math, div.math")) {
      formula.textContent = formula.textContent
        .replace(/\\[([)\]]/g, "")
        .replace(/\\(?:text|mathbb|mathrm)\{([^{}]*)\}/g, "$1")
        .replace(/\\sqrt\{([^{}]*)\}/g, "√$1")
        .replace(/[\\{}]/g, "");
    }
    return found.textContent;
  };
});

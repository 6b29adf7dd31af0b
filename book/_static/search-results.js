// What a result shows of its page: the article's words, without buttons, and formulas without their markup.

if (typeof Search !== "undefined") {
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.body;
    const found = (anchor && article.querySelector(anchor)) || article;
    for (const other of found.querySelectorAll(".headerlink, script, style, svg, .strip, .opener-part, figcaption")) {
      other.remove();
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
}

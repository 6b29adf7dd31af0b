// A card beside a link to a term, a letter, a reference or an equation: what the link leads to, without going there.
// It comes with the pointer, the keyboard or a first tap, and goes with Escape. Without it the link still leads.

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector(".bd-article");
  const data = JSON.parse(document.getElementById("cards")?.textContent ?? "{}");
  const margin = 8; // pixels between card, link and the window's edge
  const card = document.createElement("div");
  let shown = null; // the link whose card is open
  let width; // of the window, when a card was shown: asked for before, it would hold up the page
  let timer = 0;
  let touched = false;

  if (!article) return;
  card.id = "hover-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);

  function paragraph(text, kind) {
    const made = document.createElement("p");
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // A card is read with its link; the keyboard does not stop in it.
  function leaveOutOfOrder(part) {
    for (const stop of [part, ...part.querySelectorAll("[tabindex]")]) stop.removeAttribute("tabindex");
    return part;
  }

  // Draws the formulas of a card's paragraphs; says whether there was anything to draw them with.
  function typeset(link, boxes) {
    if (!boxes.length) return true;
    if (!window.MathJax?.typesetPromise) return false;
    MathJax.typesetPromise(boxes).then(() => {
      boxes.forEach(leaveOutOfOrder);
      if (shown === link) place(link);
    });
    return true;
  }

  function mathematics(link, tex) {
    const address = link.getAttribute("href");
    const drawn = address.startsWith("#") && document.getElementById(address.slice(1))?.closest("div.math");
    const formula = drawn && drawn.querySelector("mjx-container");
    if (formula) return [leaveOutOfOrder(formula.cloneNode(true))];
    if (!tex || !window.MathJax?.typesetPromise) return [];
    const box = paragraph(`\\[${tex}\\]`);
    typeset(link, [box]);
    return [box];
  }

  // What the card of a link holds; nothing for a link that has none.
  function content(link) {
    const known = data[link.getAttribute("href")];
    if (known?.text) {
      const made = known.made ? [paragraph(known.made, "made")] : [];
      const parts = [paragraph(known.name, "name"), paragraph(known.text), ...made];
      const drawn = typeset(link, parts.filter((part) => part.textContent.includes("\\(")));
      return drawn ? parts : [];
    }
    if (link.dataset.reference) return [paragraph(link.dataset.reference)];
    return mathematics(link, known?.tex);
  }

  function place(link) {
    const lines = [...link.getClientRects()];
    const line = lines[0];
    card.style.maxHeight = "";
    const width = card.offsetWidth;
    const below = window.innerHeight - lines[lines.length - 1].bottom - 2 * margin;
    const above = line.top - 2 * margin;
    const under = card.offsetHeight <= below || below >= above;
    card.style.maxHeight = `${under ? below : above}px`;
    const rightmost = document.documentElement.clientWidth - width - margin;
    const left = Math.max(margin, Math.min(line.left, rightmost));
    const top = under ? lines[lines.length - 1].bottom + margin : line.top - card.offsetHeight - margin;
    card.style.left = `${left + window.scrollX}px`;
    card.style.top = `${top + window.scrollY}px`;
  }

  function hide() {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    card.hidden = true;
  }

  function show(link) {
    clearTimeout(timer);
    if (shown === link) return true;
    hide();
    const parts = content(link);
    if (!parts.length) return false;
    shown = link;
    width = innerWidth;
    window.MathJax?.typesetClear?.([card]);
    card.replaceChildren(...parts);
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    place(link);
    return true;
  }

  function later(action, wait) {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  }

  // The browser's own tip would show the same title once more.
  for (const link of article.querySelectorAll('a[title][href*="bibliography.html#"]')) {
    link.dataset.reference = link.title;
    link.removeAttribute("title");
  }

  for (const link of article.querySelectorAll(".notation-letter[title]")) {
    link.setAttribute("aria-label", link.title);
    link.removeAttribute("title");
  }

  const kinds = '.glossary-term, .notation-letter, .paper-equation, [data-reference], a.reference[href^="#equation-"]';
  const linkAt = (event) => event.target.closest?.(kinds);
  const inside = (event) => event.target === card || card.contains(event.target);

  document.addEventListener("pointerover", (event) => {
    const link = event.pointerType !== "touch" && article.contains(event.target) && linkAt(event);
    if (link) later(() => show(link), 150);
    else if (inside(event)) clearTimeout(timer);
    else if (shown && !shown.matches(":focus-visible")) later(hide, 250);
    else clearTimeout(timer);
  });
  document.addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch";
    if (shown && !inside(event) && linkAt(event) !== shown) hide();
  });
  article.addEventListener("click", (event) => {
    const link = linkAt(event);
    if (touched && link && shown !== link && show(link)) event.preventDefault();
  });
  article.addEventListener("focusin", (event) => {
    const link = linkAt(event);
    if (link?.matches(":focus-visible")) show(link);
  });
  article.addEventListener("focusout", () => !touched && later(hide, 0));
  document.addEventListener("keydown", (event) => {
    touched = false;
    if (event.key === "Escape") hide();
  });
  window.addEventListener("resize", () => {
    if (shown && innerWidth !== width) hide(); // not when a phone's bars come and go
  });
  window.addEventListener("pagehide", hide);
});

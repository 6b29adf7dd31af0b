// What can be seen to be wrong on a page, one function a kind. Each returns sentences, none where all is well.

window.siteFindings = (() => {
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const everything = "body *:not(mjx-container *)"; // a formula is one thing, not a box for each glyph
  const within = (selector) => [...document.querySelectorAll(selector)].filter(visible);
  const words = (element, length = 60) => element.textContent.replace(/\s+/g, " ").trim().slice(0, length);

  function called(element) {
    const classes = [...element.classList].slice(0, 3).map((name) => `.${name}`).join("");
    return `<${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}${classes}> "${words(element, 40)}"`;
  }

  // The page itself scrolls sideways; named is what sticks out furthest.
  function sideways() {
    const root = document.documentElement;
    const width = root.clientWidth;
    if (root.scrollWidth <= width + 1) return [];
    const reach = (element) => element.getBoundingClientRect().right;
    const out = within(everything).filter((element) => reach(element) > width + 1);
    const furthest = out.reduce((a, b) => (reach(b) >= reach(a) ? b : a), document.body);
    return [`the page is ${root.scrollWidth} px wide in ${width}: ${called(furthest)}`];
  }

  function hasCue(element, style) {
    const bar = element.offsetHeight - element.clientHeight - 2 * parseFloat(style.borderTopWidth || 0);
    return style.maskImage !== "none" || style.textOverflow === "ellipsis" || bar >= 8;
  }

  // Something is wider than its box, and nothing shows it.
  function cut() {
    const found = [];
    for (const element of within(everything)) {
      const style = getComputedStyle(element);
      const shown = element.clientWidth;
      if (style.overflowX === "visible" || shown <= 2 || element.matches("input, textarea")) continue;
      if (element.scrollWidth > shown + 1 && !hasCue(element, style)) {
        found.push(`${element.scrollWidth} px in ${shown}: ${called(element)}`);
      }
      const clipped = ["hidden", "clip"].includes(style.overflowY) && element.clientHeight > 2;
      if (clipped && element.scrollHeight > element.clientHeight + 6 && words(element)) {
        found.push(`${element.scrollHeight} px high in ${element.clientHeight}: ${called(element)}`);
      }
    }
    return found;
  }

  function raw() {
    const wrong = /:::|```|\{[a-z:-]+\}`|\\\(|\\\[|\\(?:frac|mathbb|mathbf|sqrt|times|begin)\b|\$[^$\d][^$]*\$/;
    const found = within("mjx-merror").map((element) => `a formula that cannot be read: ${words(element)}`);
    found.push(...within("main dl.py cite").map((name) => `code that was read as a title: ${words(name)}`));
    const walker = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const parent = node.parentElement;
      if (parent.closest("pre, code, script, style, noscript, mjx-container, textarea") || !visible(parent)) continue;
      if (wrong.test(node.data)) found.push(`"${node.data.trim().slice(0, 70)}"`);
    }
    return found;
  }

  function pictures() {
    const images = within("img").filter((image) => !image.getAttribute("alt")?.trim());
    const drawings = within("article svg").filter(
      (svg) => !svg.closest("[aria-hidden=true], button, a, summary, mjx-container") &&
        !svg.getAttribute("aria-label") && !svg.hasAttribute("aria-labelledby") && !svg.querySelector(":scope > title"),
    );
    return [...images, ...drawings].map((element) => `${element.getAttribute("src") ?? called(element)} has no words`);
  }

  function headings() {
    const found = [];
    let last = 0;
    for (const heading of within("main :is(h1, h2, h3, h4, h5, h6)")) {
      const level = Number(heading.tagName[1]);
      if (level > last + 1) found.push(`h${level} after ${last ? `h${last}` : "nothing"}: "${words(heading)}"`);
      if (level === 1 && last) found.push(`a second h1: "${words(heading)}"`);
      last = level;
    }
    return last ? found : ["no heading"];
  }

  function ids() {
    const seen = new Map();
    for (const { id } of document.querySelectorAll("[id]")) seen.set(id, (seen.get(id) ?? 0) + 1);
    return [...seen].filter(([, count]) => count > 1).map(([id, count]) => `"${id}" ${count} times`);
  }

  // What folds and unfolds has a name, and no two on a page have the same.
  function toggles() {
    const seen = new Map();
    for (const element of within("button[aria-expanded], summary, .theme-switch-button")) {
      const name = (element.getAttribute("aria-label") ?? element.innerText ?? "").replace(/\s+/g, " ").trim();
      if (/^toggle|light dark/i.test(name)) seen.set(name, 2);
      seen.set(name, (seen.get(name) ?? 0) + 1);
    }
    return [...seen].filter(([name, count]) => !name || count > 1).map(([name, count]) => `"${name}" ${count} times`);
  }

  function tabStops() {
    return within("mjx-container[tabindex]").map((formula) => `a formula is a tab stop: ${words(formula)}`);
  }

  // Links in the text have one colour, code in them too; what leads to the glossary, the notation or an equation
  // looks like the text, a button like a button, the part above a title like a caption.
  function links() {
    const quiet = ".headerlink, .glossary-term, .notation-letter, .paper-equation, .opener-part a, .get a, .sd-btn, .sd-stretched-link";
    const named = new Map();
    for (const link of within("article a[href]")) {
      if (link.matches(quiet) || !link.textContent.trim()) continue;
      const speaking = link.querySelector("code, .pre") ?? link;
      const colour = getComputedStyle(speaking).color;
      if (!named.has(colour)) named.set(colour, words(link, 30));
    }
    return named.size > 1 ? [[...named].map(([colour, first]) => `${colour} of "${first}"`).join(", ")] : [];
  }

  // ---- text in inline drawings -------------------------------------------------------------------------

  const rgb = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);

  function luminance([red, green, blue]) {
    const linear = [red, green, blue].map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }

  function contrast(one, other) {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  function ground(element) {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  }

  function behind(text, svg) {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const shapes = [...svg.querySelectorAll("rect, circle, ellipse, path, polygon")].filter((shape) => {
      const area = shape.getBoundingClientRect();
      const style = getComputedStyle(shape);
      const below = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      const solid = style.fill.startsWith("rgb") && (rgb(style.fill)[3] ?? 1) * style.fillOpacity * style.opacity > 0.9;
      return below && solid && visible(shape) &&
        area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
    });
    return shapes.length ? rgb(getComputedStyle(shapes.at(-1)).fill) : ground(svg);
  }

  function drawings() {
    const found = [];
    for (const svg of within("article svg")) {
      for (const text of svg.querySelectorAll("text")) {
        const style = getComputedStyle(text);
        if (!text.textContent.trim() || !visible(text) || !style.fill.startsWith("rgb")) continue;
        const size = parseFloat(style.fontSize) * (text.getScreenCTM()?.a ?? 1);
        const ratio = contrast(rgb(style.fill), behind(text, svg));
        if (ratio < (size >= 24 ? 3 : 4.5)) found.push(`${ratio.toFixed(2)}:1 for "${words(text)}"`);
      }
    }
    return found;
  }

  // ---- text by its colours -----------------------------------------------------------------------------

  // What an element stands on, as far as styles tell: two of the same grounds have the same contrast.
  const grounds = new Map();

  function groundsOf(element) {
    if (!element) return "";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const image = style.backgroundImage === "none" ? "" : style.backgroundImage;
      const own = [style.backgroundColor, image, style.opacity, style.filter, style.position].join(" ");
      const below = groundsOf(element.parentElement);
      grounds.set(element, own === "rgba(0, 0, 0, 0)  1 none static" ? below : `${below}|${own}`);
    }
    return grounds.get(element);
  }

  // The longest text of each sort that has not been asked about yet: texts of the same colour and grounds, all
  // large or all small, links among them with the same text around, are one sort.
  const asked = new Set();

  function newSortsOfText() {
    grounds.clear(); // the theme may have changed
    const sorts = new Map();
    for (const element of within(everything)) {
      const speaks = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (!speaks) continue;
      const { color, fontSize, fontWeight, textShadow, textDecorationLine } = getComputedStyle(element);
      const link = element.matches("a") ? [textDecorationLine, getComputedStyle(element.parentElement).color] : [];
      const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24); // pixels; less contrast will do
      const sort = [color, large, textShadow, groundsOf(element), ...link].join(";");
      const longest = sorts.get(sort);
      if (asked.has(sort) || (longest && words(longest).length >= words(element).length)) continue;
      sorts.set(sort, element);
    }
    for (const sort of sorts.keys()) asked.add(sort);
    return [...sorts.values()];
  }

  // What has not been seen before, without what lies inside of it.
  const shown = new WeakSet();

  function newElements() {
    const found = [];
    for (const element of within(everything)) {
      if (!shown.has(element) && !found.at(-1)?.contains(element)) found.push(element);
      shown.add(element);
    }
    return found;
  }

  const kinds = { sideways, cut, raw, pictures, headings, ids, toggles, tabStops, links, drawings };
  const look = (wanted) => Object.fromEntries((wanted ?? Object.keys(kinds)).map((kind) => [kind, kinds[kind]()]));
  return { ...kinds, look, newSortsOfText, newElements };
})();

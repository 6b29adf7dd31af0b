/*! MathJax, Apache License 2.0 (LICENSE beside this file), bundled and cut down for this book. */
(() => {
const parts = {
__PARTS__
};
const given = window.MathJax ?? {};
const root = document.currentScript.src.replace(/\/[^\/]*$/, "/");
const fetched = (url) => new Promise((done, failed) => {
  const script = Object.assign(document.createElement("script"), {src: url, onload: done, onerror: failed});
  document.head.append(script);
});
window.MathJax = {
  ...given,
  loader: {
    ...given.loader,
    load: __NAMES__,
    require: (url) => {
      const part = parts[url.replace(root, "").replace(/\.js$/, "")];
      return part ? part() : fetched(url);
    },
  },
  options: {...given.options, enableAssistiveMml: true},
  chtml: {...given.chtml, matchFontHeight: false, scale: __SCALE__},
};
__STARTUP__
})();

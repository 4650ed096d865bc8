// Making elements and showing numbers. Text is only ever set as text: nothing here can turn a document into markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("p", {class: "lede"}, "text", child, ...). Properties that are null or false are left out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function clear(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

// -- numbers, all with a true minus sign and in tabular figures by the style sheet ------------------------------------

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const minus = (text) => text.replace("-", "−");

export const count = (value) => (known(value) ? minus(value.toLocaleString("en-US")) : "–");
const grouped = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const fixed = (value, digits = 3) => (known(value) ? minus(grouped(value, digits)) : "–");
export const percent = (value, digits = 1) => (known(value) ? `${(100 * value).toFixed(digits)}%` : "–");
export const signed = (value, digits = 2) =>
  known(value) ? (value > 0 ? "+" : "") + minus(grouped(value, digits)) : "–";
export const interval = (one, digits = 3) =>
  one
    ? `${fixed(one.value, digits)} [${known(one.low) ? fixed(one.low, digits) : "−∞"}, ${known(one.high) ? fixed(one.high, digits) : "∞"}]`
    : "–";

/** The class of a cell whose interval excludes `at`; an interval without an end on that side excludes nothing. */
export const sureClass = (range, at) =>
  (known(range.low) && range.low > at) || (known(range.high) && range.high < at) ? "number sure" : "number";

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** "out_of_budget" as words. */
export const words = (name) => String(name ?? "").replaceAll("_", " ");

/** Run a function once nothing has called for it for a while. */
export function later(work, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
}

/** Hand a file to the reader. */
export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

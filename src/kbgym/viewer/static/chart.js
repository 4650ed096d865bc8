// Two kinds of figure, drawn as SVG: points with intervals, and lines. Both redraw to the width they have.

import { clear, download, h, s } from "./dom.js";

const MARKS = {
  trained: (x, y, r) => s("circle", { cx: x, cy: y, r }),
  both: (x, y, r) => s("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r }),
  one: (x, y, r) => s("path", { d: `M${x} ${y - r * 1.25}L${x + r * 1.2} ${y + r}L${x - r * 1.2} ${y + r}Z` }),
  neither: (x, y, r) =>
    s("path", { d: `M${x} ${y - r * 1.35}L${x + r * 1.35} ${y}L${x} ${y + r * 1.35}L${x - r * 1.35} ${y}Z` }),
};
const mark = (group) => MARKS[group] ?? MARKS.trained;

/** A figure that draws itself to its width, with a button that saves it. */
function figure(name, title, caption, draw) {
  const canvas = h("div", { class: "canvas" });
  const element = h(
    "figure",
    { class: "chart" },
    h(
      "div",
      { class: "tools" },
      h("span", { class: "title" }, title),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          title: "save this figure as SVG",
          onclick: () => download(`${name}.svg`, standalone(canvas.querySelector("svg")), "image/svg+xml"),
        },
        "SVG",
      ),
    ),
    canvas,
    caption ? h("figcaption", {}, caption) : null,
  );
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now && Math.abs(now - width) > 4) {
      width = now;
      const svg = draw(now);
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", title);
      clear(canvas, svg);
    }
  }).observe(canvas);
  return element;
}

const KEPT = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "fill-opacity",
  "font-size",
  "font-weight",
  "text-anchor",
];

/** A drawing with its colours written into it, so that it looks the same without our style sheet. */
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, into] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) into[at].setAttribute(name, style.getPropertyValue(name));
    into[at].removeAttribute("class");
  });
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: paper }));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "system-ui, sans-serif");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

/** Round steps over a range, at most so many. */
function ticks(low, high, most) {
  const rough = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  const found = [];
  for (let at = Math.ceil(low / size - 1e-9) * size; at <= high + size * 1e-9; at += size)
    found.push(Math.abs(at) < size / 1e6 ? 0 : at);
  return {
    found,
    digits: Math.max(0, Math.min(3, -Math.floor(Math.log10(size) + 1e-9) + (size / power === 2.5 ? 1 : 0))),
  };
}

/** rows: {label, points: [{group, label, value, low, high, text}]}; a dashed line stands at `at`. */
export function dotPlot({ name, title, caption, rows, at, axis, groups }) {
  return figure(name, title, caption, (width) => {
    const narrow = width < 520;
    const left = narrow ? 12 : 170;
    const step = 15;
    const tall = (row) => row.points.length * step + (narrow ? 34 : 20);
    const height = 30 + rows.reduce((sum, row) => sum + tall(row), 0) + 46;
    const all = rows
      .flatMap((row) => row.points.flatMap((point) => [point.value, point.low, point.high]))
      .filter(Number.isFinite);
    let [low, high] = [Math.min(at, ...all), Math.max(at, ...all)];
    const room = (high - low || 1) * 0.06;
    [low, high] = [low - room, high + room];
    const x = (value) => left + ((Math.max(low, Math.min(high, value)) - low) / (high - low)) * (width - left - 14);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    const { found, digits } = ticks(low, high, narrow ? 5 : 8);
    for (const one of found) {
      svg.append(
        s("line", { class: "grid", x1: x(one), x2: x(one), y1: 26, y2: height - 40 }),
        s(
          "text",
          { class: "tick", x: x(one), y: height - 25, "text-anchor": "middle" },
          one.toFixed(digits).replace("-", "−"),
        ),
      );
    }
    svg.append(s("line", { class: "rule", x1: x(at), x2: x(at), y1: 22, y2: height - 40 }));
    let place = left;
    for (const group of groups) {
      svg.append(
        s("g", { class: `g-${group.group}` }, mark(group.group)(place + 5, 10, 4)),
        s("text", { class: "tick", x: place + 14, y: 14 }, group.label),
      );
      place += 30 + group.label.length * 6.6;
    }
    let y = 30;
    for (const row of rows) {
      svg.append(
        s(
          "text",
          {
            class: "name",
            x: narrow ? left : left - 12,
            y: narrow ? y + 12 : y + tall(row) / 2 + 4,
            "text-anchor": narrow ? "start" : "end",
          },
          row.label,
        ),
      );
      row.points.forEach((point, number) => {
        const line = y + (narrow ? 26 : 16) + number * step;
        svg.append(
          s(
            "g",
            { class: `g-${point.group}` },
            s("title", {}, `${row.label}, ${point.label}: ${point.text}`),
            s("line", { class: "whisker", x1: x(point.low ?? low), x2: x(point.high ?? high), y1: line, y2: line }),
            mark(point.group)(x(point.value), line, 4.2),
          ),
        );
      });
      y += tall(row);
    }
    svg.append(s("text", { class: "axis", x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, axis));
    return svg;
  });
}

/** series: {name, group, points: [[x, y]], dots}; marks: places on the x axis where something begins. */
export function lineChart({
  name,
  title,
  caption,
  series,
  xAxis,
  yAxis,
  marks = [],
  from = null,
  show = (value) => String(value),
}) {
  return figure(name, title, caption, (width) => {
    const height = Math.round(Math.max(190, Math.min(280, width * 0.5)));
    const [left, right, top, bottom] = [50, 14, 34, 40];
    const xs = series.flatMap((one) => one.points.map((point) => point[0]));
    const ys = series.flatMap((one) => one.points.map((point) => point[1]));
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    let [y0, y1] = [from ?? Math.min(...ys), Math.max(...ys)];
    if (y0 === y1) [y0, y1] = [y0 - 0.5, y1 + 0.5];
    const room = (y1 - y0) * 0.06;
    y1 += room;
    if (from === null) y0 -= room;
    const x = (value) => left + ((value - x0) / (x1 - x0 || 1)) * (width - left - right);
    const y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    const vertical = ticks(y0, y1, 4);
    for (const one of vertical.found) {
      svg.append(
        s("line", { class: "grid", x1: left, x2: width - right, y1: y(one), y2: y(one) }),
        s("text", { class: "tick", x: left - 7, y: y(one) + 4, "text-anchor": "end" }, show(one, vertical.digits)),
      );
    }
    for (const one of ticks(x0, x1, Math.min(8, width / 70)).found) {
      svg.append(
        s(
          "text",
          { class: "tick", x: x(one), y: height - bottom + 16, "text-anchor": "middle" },
          String(Math.round(one)),
        ),
      );
    }
    for (const one of marks)
      svg.append(s("line", { class: "rule", x1: x(one), x2: x(one), y1: top, y2: height - bottom }));
    let place = left;
    for (const one of series) {
      const path = one.points
        .map((point, at) => `${at ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`)
        .join("");
      const drawn = s("g", { class: `g-${one.group}` }, s("path", { class: "line", d: path }));
      if (one.dots)
        for (const point of one.points)
          drawn.append(
            s(
              "g",
              {},
              s("title", {}, `${one.name}, ${point[0]}: ${show(point[1], 3)}`),
              mark(one.group)(x(point[0]), y(point[1]), 3.4),
            ),
          );
      if (series.length > 1) {
        svg.append(
          s("g", { class: `g-${one.group}` }, mark(one.group)(place + 5, 12, 4)),
          s("text", { class: "tick", x: place + 14, y: 16 }, one.name),
        );
        place += 32 + one.name.length * 6.6;
      }
      svg.append(drawn);
    }
    svg.append(
      s("text", { class: "axis", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, xAxis),
    );
    if (series.length === 1) svg.append(s("text", { class: "axis", x: left, y: 16 }, yAxis));
    return svg;
  });
}

// A pass as a conversation: what the agent asked on the left edge, what the store answered below it.

import { documentLink, tag, view } from "./chrome.js";
import { common } from "./router.js";
import { count, fixed, h, plural, words } from "./dom.js";

// Lines shown before the rest is folded away.
const FOLD = matchMedia("(max-width: 760px)").matches ? 3 : 8;

const ASKS = {
  search: "searched for",
  read: "read",
  answer: "answered",
  add: "added",
  edit: "edited",
  delete: "deleted",
  link: "linked",
  link_many: "linked",
  unlink: "unlinked",
  done: "ended the pass",
};

/** One side: a head with the outcome, then the steps. `fresh` marks steps the other side did not take. */
export function conversation(side, context, { title, compared = false, step = null } = {}) {
  return h(
    "article",
    { class: "pass", "aria-label": title },
    h("header", {}, h("h3", {}, title), outcome(side)),
    h(
      "ol",
      { class: "steps" },
      side.steps.map((one) => turn(one, context, compared, String(one.n) === String(step))),
    ),
  );
}

function outcome(side) {
  const right = side.f1 === 1;
  return h(
    "p",
    { class: "outcome" },
    side.outcome === "answered"
      ? tag(right ? "good" : "bad", right ? "right" : side.f1 > 0 ? "partly right" : "wrong")
      : tag(side.outcome === "done" ? "good" : "bad", words(side.outcome) || "unfinished"),
    h("span", {}, plural(side.actions ?? side.steps.length, "action")),
    side.characters ? h("span", {}, `${count(side.characters)} characters read`) : null,
    side.f1 === null || side.f1 === undefined ? null : h("span", {}, `F1 ${fixed(side.f1, 2)}`),
    side.answer ? h("span", { class: "quote" }, `“${side.answer}”`) : null,
    side.failure ? h("span", { class: "sorry" }, side.failure) : null,
  );
}

function turn(one, context, compared, chosen) {
  const kind = one.result.kind;
  const item = h(
    "li",
    {
      class: ["step", kind, compared && !one.shared && "fresh", chosen && "chosen"].filter(Boolean).join(" "),
      id: chosen ? "chosen" : null,
    },
    h(
      "div",
      { class: "ask" },
      h("span", { class: "number" }, one.n),
      h(
        "p",
        {},
        h("b", {}, ASKS[one.tool] ?? one.tool),
        " ",
        one.id ? documentLink(one.id, context) : null,
        one.id && one.text ? " to say " : null,
        one.text ? h("q", {}, one.text) : null,
        one.note ? h("small", {}, ` ${one.note}`) : null,
        one.targets ? ` to ${plural(one.targets.length, "document")}` : null,
      ),
      one.evidence && one.result.lines.some((line) => line.first)
        ? h(
            "span",
            { class: "seen", title: "facts the answer depends on, seen by now" },
            `${one.evidence[0]} of ${one.evidence[1]} facts`,
          )
        : null,
    ),
    answer(one, context),
  );
  return item;
}

function answer(one, context) {
  const { result } = one;
  const head = (result.head ?? []).filter(() => result.kind === "opened").map((each) => line(each, context));
  const lines = result.lines.map((each) => line(each, context));
  // Evidence is never folded away.
  const kept = result.lines.findLastIndex((each) => each.first) + 1;
  const rest = lines.splice(lines.length > FOLD ? Math.max(FOLD - 1, kept) : lines.length);
  if (one.tool === "done" || one.tool === "answer") return null;
  return h(
    "div",
    { class: "answer" },
    head.length ? h("ul", {}, head) : null,
    result.say ? h("p", { class: "say" }, result.say) : null,
    lines.length ? h("ul", {}, lines) : null,
    rest.length ? h("details", {}, h("summary", {}, `${count(rest.length)} more`), h("ul", {}, rest)) : null,
    one.effect ? effect(one.effect, context) : null,
  );
}

const line = (one, context) =>
  h(
    "li",
    {
      class: one.evidence ? (one.first ? "evidence first" : "evidence") : null,
      title: one.evidence ? "a fact the answer depends on" : null,
    },
    view("store", { ...common(), ...context, doc: one.id }, { class: "plainlink", title: one.id }, one.text),
  );

/** What an edit came to: is it still there, and did anybody open it afterwards? */
function effect(one, context) {
  const now =
    one.kind === "gone"
      ? "It is no longer in the store"
      : one.kind === "stub"
        ? "Today it links to nothing"
        : one.links
          ? `Today it has ${plural(one.links, "link")}`
          : "It is still in the store";
  const use = [
    one.later ? plural(one.later, "later training pass", "later training passes") : null,
    one.exams ? plural(one.exams, "exam question") : null,
  ].filter(Boolean);
  return h(
    "p",
    { class: use.length ? "effect used" : "effect" },
    now,
    "; ",
    use.length ? `opened in ${use.join(" and ")}.` : "nobody opened it afterwards.",
    " ",
    one.kind === "gone" ? null : view("store", { ...context, doc: one.id }, {}, "See it"),
  );
}

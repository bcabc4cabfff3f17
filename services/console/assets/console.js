// What a browser adds to pages that are whole without it: they stay current, and keys work.
//
// A page names the stream of events after which it changes (`data-live`). On an event the same page is asked for again, and the
// differences are carried over: elements with the same key stay the same element, so that focus, selection, what is open and the
// place stay as they are. The page that comes is the record as it is then; a stream that was away costs no state.

const main = () => document.getElementById("main");
const banner = document.getElementById("stream");

// ---- Carrying differences over --------------------------------------------------------------------------------------

// Attributes that a reader changes, and a page that comes must not change back.
const OWN = new Set(["open", "data-ago", "tabindex"]);

const keyOf = (node) => (node.nodeType === 1 ? node.dataset.key || node.id || null : null);

function carry(from, to) {
  if (from.nodeType !== 1) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.isEqualNode(to)) return;
  for (const { name, value } of to.attributes) {
    if (!OWN.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !OWN.has(name)) from.removeAttribute(name);
  }
  // What somebody types, and a part that asked to be left alone.
  if (from.hasAttribute("data-still") || /^(INPUT|TEXTAREA|SELECT)$/.test(from.tagName)) return;
  carryChildren(from, to);
}

function carryChildren(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) {
    const key = keyOf(child);
    if (key !== null) keyed.set(key, child);
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    const same = key !== null ? keyed.get(key) : alike(at, wanted) ? at : null;
    if (same && same.nodeName === wanted.nodeName) {
      keyed.delete(key);
      if (same === at) at = at.nextSibling;
      else from.insertBefore(same, at);
      carry(same, wanted);
    } else {
      const added = document.importNode(wanted, true);
      if (added.nodeType === 1 && added.classList.contains("row")) added.classList.add("came");
      from.insertBefore(added, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    // Whoever stands on a row would lose the place: it stays until the focus is elsewhere.
    if (!(at.nodeType === 1 && keyOf(at) !== null && at.contains(document.activeElement))) at.remove();
    at = next;
  }
}

const alike = (node, wanted) =>
  node !== null && node.nodeType === wanted.nodeType && node.nodeName === wanted.nodeName && keyOf(node) === null;

// ---- Asking again ---------------------------------------------------------------------------------------------------

// So long at least lies between two pages that are asked for, and twice the time that the last one took.
const REST = 400;
// A page that is not there after this does not come.
const PATIENCE = 8_000;

let due = false;
let asking = false;
let rest = REST;
let failed = 0;

function ask() {
  due = true;
  if (!asking) run();
}

async function run() {
  asking = true;
  while (due && !document.hidden) {
    due = false;
    const began = performance.now();
    try {
      // A gateway that is stopped and not gone answers nothing, for ever.
      const signal = AbortSignal.timeout(PATIENCE);
      const response = await fetch(location.href, { headers: { "x-redial-again": "1" }, redirect: "manual", signal });
      if (response.type === "opaqueredirect") { location.reload(); return; }
      if (response.status >= 500 || response.status === 429) throw new Error(String(response.status));
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh) {
        const anchor = anchored();
        carry(main(), fresh);
        anchor();
        if (document.title !== page.title) document.title = page.title;
        dress();
        listen();
      }
      failed = 0;
      tell();
    } catch {
      failed += 1;
      due = true;
      tell();
    }
    const took = performance.now() - began;
    rest = failed ? Math.min(10_000, 500 * 2 ** Math.min(failed, 5)) : Math.max(REST, 2 * took);
    await new Promise((done) => setTimeout(done, rest));
  }
  asking = false;
}

// Rows that come above what is read must not push it away.
function anchored() {
  const rows = [...document.querySelectorAll("[data-key]")];
  const held = window.scrollY > 120 && rows.find((row) => row.getBoundingClientRect().top >= 0);
  if (!held) return () => {};
  const before = held.getBoundingClientRect().top;
  return () => {
    const moved = held.isConnected ? held.getBoundingClientRect().top - before : 0;
    if (Math.abs(moved) > 1) window.scrollBy(0, moved);
  };
}

// ---- The stream -----------------------------------------------------------------------------------------------------

// Everything that a stream may tell (docs/HTTP.md); what a model writes meanwhile is no step yet.
const EVENTS = [
  "listening", "call", "task", "step", "attempt", "state", "message", "started", "turn_ended", "call_ended", "retrying",
  "cancel_requested", "woken", "turn", "run", "answered", "nudged", "accepted", "fallback", "returned", "last_answer", "stopping", "ended",
];

let source = null;
let stream = null;
let last = null;
let ended = false;
let away = false;
let again = 0;

function listen() {
  const wanted = main().dataset.live || null;
  if (wanted !== stream) { close(); stream = wanted; last = null; ended = false; }
  if (!stream || source || ended || document.hidden) return;
  const address = last === null ? stream : `${stream}${stream.includes("?") ? "&" : "?"}after=${encodeURIComponent(last)}`;
  const opened = new EventSource(address);
  source = opened;
  opened.onopen = () => { away = false; again = 0; tell(); ask(); };
  opened.onerror = () => {
    if (source !== opened) return;
    away = true;
    tell();
    // A refusal ends an EventSource; 204 says that everything was told.
    if (opened.readyState === EventSource.CLOSED) {
      source = null;
      again = Math.min(10_000, (again || 500) * 2);
      setTimeout(() => { if (!source) { ask(); listen(); } }, again);
    }
  };
  const heard = (event) => { if (event.lastEventId) last = event.lastEventId; ask(); };
  for (const name of EVENTS) opened.addEventListener(name, heard);
  opened.addEventListener("end", () => { ended = true; away = false; close(); tell(); ask(); });
}

function close() {
  if (source) source.close();
  source = null;
}

function tell() {
  const text = failed
    ? "The gateway does not answer. What you see is from before; it goes on by itself."
    : away && stream && !ended
      ? "The stream of events is away. Trying again; nothing is lost."
      : "";
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = text === "";
}

document.addEventListener("visibilitychange", () => {
  // A browser has six connections to a gateway; pages that nobody sees leave them to the others.
  if (document.hidden) close();
  else { listen(); ask(); }
});

setInterval(() => {
  const seconds = Number(main().dataset.again || 0);
  if (!seconds || document.hidden) return;
  if (performance.now() - lastAsked >= seconds * 1000) { lastAsked = performance.now(); ask(); }
}, 1000);
let lastAsked = performance.now();

// ---- Times ----------------------------------------------------------------------------------------------------------

function words(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

function age() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const ms = Date.now() - Date.parse(time.dateTime);
    const text = ms < 0 ? `in ${words(-ms)}` : ms < 1000 ? "now" : `${words(ms)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(age, 5000);

// ---- Copying, and what only works with a script -----------------------------------------------------------------------

function dress() {
  for (const button of document.querySelectorAll("button.copy[hidden]")) button.hidden = false;
  for (const id of document.querySelectorAll("span.id[data-copy]:not([role])")) {
    if (id.closest("a, summary")) continue;
    id.setAttribute("role", "button");
    id.tabIndex = 0;
    id.setAttribute("aria-label", `${id.textContent}, copy ${id.dataset.copy}`);
  }
}

async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.dataset.copy);
  } catch {
    const field = document.createElement("textarea");
    field.value = element.dataset.copy;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = element.textContent;
  element.textContent = "Copied";
  setTimeout(() => { if (element.textContent === "Copied") element.textContent = before; }, 900);
}

document.addEventListener("click", (event) => {
  const element = event.target.closest("[data-copy]");
  if (element && (element.tagName === "BUTTON" || element.getAttribute("role") === "button")) { event.preventDefault(); copy(element); }
});

// How long a redrive takes at the rate that somebody types; the words are those of the page, for the rate that it came with.
document.addEventListener("input", (event) => {
  const told = document.querySelector("[data-takes]");
  if (!told || event.target.name !== "rate") return;
  const rate = Number(event.target.value);
  const seconds = Math.ceil(Number(told.dataset.takes) / rate);
  told.textContent = rate >= 1 && rate <= 10_000 ? `At ${rate} per second it takes about ${words(seconds * 1000)}.` : "";
});

// A form that only narrows what is shown needs no button.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-now]");
  if (form) form.requestSubmit();
});

// An address without the fields that are empty.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  for (const field of event.target.elements) if (field.name && field.value === "") field.disabled = true;
});
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [name]:disabled")) field.disabled = false;
});

// On narrow screens the sections do not fit: the one that this is comes into view.
const section = document.querySelector(".sections a[aria-current]");
if (section) {
  const list = section.closest(".sections");
  list.scrollLeft = section.offsetLeft - (list.clientWidth - section.offsetWidth) / 2;
}

// ---- Keys -----------------------------------------------------------------------------------------------------------

const rows = () => [...main().querySelectorAll("a.row, .lane > summary, tr[data-row] a[data-open], .row a[data-open]")].filter((row) => row.offsetParent !== null);

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

let going = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  if (field) { if (event.key === "Escape") field.blur(); return; }
  if (document.getElementById("keys").open) return;
  if (going && performance.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  switch (event.key) {
    case "j": step(1); break;
    case "k": step(-1); break;
    case "g": going = performance.now(); break;
    case "/": { const find = document.getElementById("find"); if (!find) return; find.focus(); find.select(); break; }
    case "?": document.getElementById("keys").showModal(); break;
    case "y": {
      const row = document.activeElement.closest(".row, .lane, tr");
      const id = row && row.querySelector("[data-copy]");
      if (id) copy(id);
      break;
    }
    default: return;
  }
  event.preventDefault();
});

// ---- Arguments that are checked while they are edited -------------------------------------------------------------------

let checking = 0;
document.addEventListener("input", (event) => {
  const field = event.target.closest("textarea[data-check]");
  if (!field) return;
  clearTimeout(checking);
  checking = setTimeout(() => check(field), 250);
});

async function check(field) {
  const shown = document.getElementById(field.getAttribute("aria-describedby"));
  const text = field.value;
  let body;
  try {
    JSON.parse(text);
    // As it is written: a number keeps all its digits.
    body = `{"arguments":${text}}`;
  } catch (error) {
    verdict(shown, "bad", [`This is not JSON yet: ${error.message}`]);
    return;
  }
  try {
    const response = await fetch(field.dataset.check, { method: "POST", headers: { "content-type": "application/json" }, body });
    const answer = await response.json();
    if (field.value !== text) return;
    if (!response.ok) { verdict(shown, "warn", [answer.detail || "It could not be checked."]); return; }
    const broken = (answer.errors || []).map((error) => `${error.path || "the whole"} breaks ${error.rule}: allowed is ${error.allowed}${error.hint ? ` (${error.hint})` : ""}`);
    const mended = (answer.repairs || []).map((repair) => `repaired: ${repair.kind}${repair.path ? ` at ${repair.path}` : ""}`);
    if (answer.valid) verdict(shown, "good", ["Fits the schema.", ...mended]);
    else verdict(shown, "bad", broken.length ? broken : ["It does not fit the schema."]);
  } catch {
    verdict(shown, "warn", ["It could not be checked: the gateway does not answer."]);
  }
}

function verdict(shown, kind, lines) {
  shown.className = `checked ${kind}`;
  shown.replaceChildren(...lines.map((line) => { const item = document.createElement("li"); item.textContent = line; return item; }));
}

// ---- Begin ----------------------------------------------------------------------------------------------------------

dress();
listen();
for (const field of document.querySelectorAll("textarea[data-check]")) check(field);

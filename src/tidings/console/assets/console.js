// What pages can't do by themselves: pause what looks again by itself, copy, and tick all rows.
"use strict";

// Nobody looks at a hidden page; and what somebody is just using must not be replaced under their hands.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.target;
  if (!part.hasAttribute("data-live")) return;
  const isInUse = part.querySelector("details[open]") || (part.contains(document.activeElement) && part !== document.activeElement);
  if (document.hidden || isInUse) event.preventDefault();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !window.htmx) return;
  for (const part of document.querySelectorAll("[data-live]")) window.htmx.ajax("GET", part.getAttribute("hx-get"), part);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = said; }, 1500);
  } catch {
    // Without https a browser may refuse: then the text can still be marked by hand.
    const range = document.createRange();
    range.selectNodeContents(button.parentElement.querySelector("code") || button);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
});

// <input type="checkbox" data-ticks="ids"> ticks every box of that name in its form.
document.addEventListener("change", (event) => {
  const all = event.target.closest("input[data-ticks]");
  if (!all || !all.form) return;
  for (const box of all.form.querySelectorAll(`input[type=checkbox][name="${CSS.escape(all.dataset.ticks)}"]`)) box.checked = all.checked;
});

// A question that was opened is closed by Escape, or by a click elsewhere.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll("details.confirm[open]")) {
    open.removeAttribute("open");
    open.querySelector("summary").focus();
  }
});
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details.confirm[open]")) if (!open.contains(event.target)) open.removeAttribute("open");
});

// On a phone the areas stand in a row that is wider than the screen: the one where we are is in sight.
document.querySelector(".areas [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Comforts for the pages: answers without a reload, sliders that show what they change, keys. All work without them.
"use strict";

(() => {
  const announce = (text) => { document.getElementById("status").textContent = text; };

  // Post a form and put the fragment that comes back in place of an element.
  async function swap(form, url, target, signal, submitter) {
    const body = new URLSearchParams(new FormData(form));
    if (submitter && submitter.name) body.set(submitter.name, submitter.value);
    const response = await fetch(url, { method: "POST", body, signal, headers: { "X-Fragment": "yes" } });
    if (response.status === 401) location.reload();
    const text = await response.text();
    if (response.ok) target.innerHTML = text;
    else announce(new DOMParser().parseFromString(text, "text/html").body.textContent.trim());
    return response.ok;
  }

  // Rows: requests that can be walked through and answered.
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const current = () => document.activeElement.closest("[data-row]");
  const focusRow = (row) => { if (row) row.querySelector("[data-open]").focus(); };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.swap) return;
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "yes";
    const target = document.querySelector(form.dataset.swap);
    const place = rows().indexOf(form.closest("[data-row]"));
    try {
      if (await swap(form, form.getAttribute("action"), target, undefined, event.submitter)) {
        const left = rows();
        const next = left[Math.min(Math.max(place, 0), left.length - 1)];
        if (next) focusRow(next);
        else document.getElementById("main").focus();
        const notice = target.querySelector("[data-notice]");
        if (notice) announce(notice.textContent.trim());
      }
    } catch {
      announce("The server could not be reached. Nothing was changed.");
    }
    delete form.dataset.busy;
  });

  // Sliders: show their value, and what they would change.
  let timer;
  let asking;
  document.addEventListener("input", (event) => {
    const output = event.target.parentElement.querySelector("output");
    if (output && event.target.type === "range") output.textContent = Number(event.target.value).toFixed(2);
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      if (asking) asking.abort();
      asking = new AbortController();
      try {
        await swap(form, form.dataset.preview, document.getElementById("preview"), asking.signal);
      } catch (error) {
        if (error.name !== "AbortError") announce("The server could not be reached.");
      }
    }, 120);
  });

  // Keys: one letter each, which can be turned off, and none while typing.
  const help = document.getElementById("keys");
  const wanted = document.getElementById("keys-wanted");
  const remembered = (value) => {
    try {
      if (value !== undefined) localStorage.setItem("keys", value);
      return localStorage.getItem("keys") !== "off";
    } catch {
      return true;
    }
  };

  function walk(step) {
    const all = rows();
    const here = all.indexOf(current());
    focusRow(all[here < 0 ? 0 : Math.min(Math.max(here + step, 0), all.length - 1)]);
  }

  const press = (key) => {
    const place = current() || document.querySelector("[data-keys]");
    const button = place && place.querySelector(`[data-key~="${key}"]`);
    if (button) button.click();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !help || help.open || !remembered()) return;
    if (event.target.closest("input:not([type=range], [type=checkbox]), select, textarea")) return;
    if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (["a", "d", "c", "u"].includes(event.key)) press(event.key);
    else if (event.key === "?") help.showModal();
    else return;
    event.preventDefault();
  });

  if (help) {
    const opener = document.getElementById("keys-open");
    opener.hidden = false;
    opener.addEventListener("click", () => help.showModal());
    wanted.checked = remembered();
    wanted.addEventListener("change", () => remembered(wanted.checked ? "on" : "off"));
  }
})();

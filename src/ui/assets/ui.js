// Comforts only: every page reads without this file.
(() => {
  "use strict";

  // "/" leads to the field that a page is searched with.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const field = document.querySelector("[data-search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  document.addEventListener("change", (event) => {
    const box = event.target;
    // The box in the head of a table stands for those of its rows.
    if (box.matches("[data-check-all]")) {
      for (const row of box.closest("table").querySelectorAll("tbody input[type=checkbox]")) row.checked = box.checked;
    }
    // A choice that is a form of its own is sent when it is made.
    if (box.matches("[data-send]")) box.form.requestSubmit();
    const counter = document.querySelector("[data-chosen]");
    if (counter) {
      const every = document.querySelector("[data-every]:checked");
      const ticked = document.querySelectorAll("tbody input[type=checkbox]:checked").length;
      const chosen = every ? Number(every.dataset.every).toLocaleString("en") : ticked;
      counter.textContent = counter.dataset.chosen.replace("#", chosen);
    }
  });

  // One more row like the last one, empty.
  for (const button of document.querySelectorAll("[data-more]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const rows = document.getElementById(button.dataset.more);
      const row = rows.lastElementChild.cloneNode(true);
      for (const field of row.querySelectorAll("input")) {
        field.value = "";
        field.setAttribute("aria-label", field.getAttribute("aria-label").replace(/\d+$/, rows.children.length + 1));
      }
      rows.append(row);
      row.querySelector("input").focus();
    });
  }

  // Copies the text of the element that a button names.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.copied;
  });

  // A form that takes long says so, and is not sent twice.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || !button.dataset.busy) return;
    button.classList.add("busy");
    button.setAttribute("aria-disabled", "true");
    button.dataset.idle = button.textContent;
    // "#" stands for the seconds that it has taken.
    const since = Date.now();
    const tell = () => {
      button.textContent = button.dataset.busy.replace("#", Math.round((Date.now() - since) / 1000));
    };
    tell();
    button.timer = setInterval(tell, 1000);
    // Leaving the page ends the request, and the server gives up what it was asked.
    const stop = button.form.querySelector("[data-stop]");
    if (stop) stop.hidden = false;
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("button[aria-disabled=true]")) event.preventDefault();
  }, true);
  // A page that comes back from the cache of the browser is idle again.
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[data-idle]")) {
      clearInterval(button.timer);
      button.textContent = button.dataset.idle;
      delete button.dataset.idle;
      button.classList.remove("busy");
      button.removeAttribute("aria-disabled");
    }
    for (const stop of document.querySelectorAll("[data-stop]")) stop.hidden = true;
  });
})();

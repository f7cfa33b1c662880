"use strict";
// Labels by keys: a label goes on to the next card. What is sent and shown is htmx's and the server's.
{
  const cells = () => [...document.querySelectorAll("#cells .cell")];
  const KEYS = { y: "yes", n: "no", c: "clear" };
  const across = () => cells().filter((one) => one.offsetTop === cells()[0].offsetTop).length || 1; // cards in a row
  const focus = (place) => cells()[Math.min(Math.max(place, 0), cells().length - 1)]?.focus();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, dialog")) return;
    const cell = event.target.closest(".cell");
    const at = cells().indexOf(cell);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across(), ArrowUp: -across() }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      focus(cell ? at + step : 0);
    } else if (KEYS[event.key] && cells().length) {
      event.preventDefault();
      const wanted = cell ?? cells()[0];
      wanted.querySelector(`button[value="${KEYS[event.key]}"]`).click();
      if (event.key !== "c") focus(cells().indexOf(wanted) + 1);
    }
  });
  if (cells().length && matchMedia("(hover: hover)").matches) focus(0);
}

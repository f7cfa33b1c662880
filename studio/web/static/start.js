"use strict";
// Of the kinds of oracle only the chosen one is shown with its parameters.
{
  const kind = document.getElementById("f-oracle_kind");
  const show = () => {
    for (const part of document.querySelectorAll("fieldset[data-kind]")) part.hidden = part.dataset.kind !== kind.value;
  };
  if (kind) {
    kind.addEventListener("change", show);
    show();
  }
}

"use strict";
// A discovery as it happens. Every event comes from the run's own file, the first ones too: a reload shows the same.
(() => {
  const { key, csrf } = byId("asking").dataset;
  const finished = !byId("stop");
  const ASKED = {
    "two-of-three": "What do two of the three share that the third lacks?",
    shared: "What do at least two of these share that at least one lacks?",
    "one-or-two": "What do one or two of the three have that the others lack?",
    pair: "What does one of the two have that the other lacks?",
    "one-of-three": "What does one of the three have that the other two lack?",
    "left-right": "What do all on the left have that none on the right has?",
    groups: "What do clearly more of one group have than of the other?",
    tag: "What is there to say about this one?",
  };
  const SHOWN_ANSWERS = 60;
  const MANY = 5; // names in a line

  function tile(name, event, side = "") {
    const row = event.rows[name];
    const text = event.texts[name];
    const made = make("span", { class: `tile ${side}`, title: name });
    if (row !== undefined && text === undefined) {
      const image = make("img", { src: `/live/${key}/media/${row}/small`, alt: name, loading: "lazy" });
      image.addEventListener("error", () => image.replaceWith(make("bdi", {}, name)));
      made.append(image);
    } else made.append(make("bdi", { class: "text", dir: "auto" }, text ?? name));
    return made;
  }
  function tiles(asked, event, having = []) {
    const side = (place) => (having.length ? (having.includes(place) ? "yes" : "no") : "");
    const row = make("div", { class: "row" }, ...asked.examples.map((name, place) => tile(name, event, side(place))));
    if (asked.without.length) {
      row.append(make("span", { class: "against" }, "against"),
        ...asked.without.map((name, place) => tile(name, event, side(asked.examples.length + place))));
    }
    return row;
  }
  const count = (number) => number.toLocaleString("en");
  const dollars = (amount) => `$${amount === 0 || amount >= 0.995 ? amount.toFixed(2) : amount.toFixed(4)}`;

  const cards = new Map(); // by the feature's name
  // steer.js sends a veto, and the page stays where it is.
  function tools(name) {
    const form = make("form", { class: "command", method: "post", action: `/live/${key}/steer` }, ...[["csrf", csrf], ["action", "veto"], ["name", name]]
      .map(([key_, value]) => make("input", { type: "hidden", name: key_, value })));
    form.append(make("button", { "aria-label": `Veto ${name}` }, "Veto"));
    return make("div", { class: "tools" }, form);
  }

  const show = {
    begun() {
      for (const id of ["list", "answers"]) byId(id).replaceChildren();
      cards.clear();
    },
    asking(event) {
      byId("going").textContent = "Asking what tells examples apart …";
      byId("asking").replaceChildren(...event.questions.slice(0, 4).map((asked) => make("div", { class: "asked" },
        make("p", {}, ASKED[asked.question] ?? asked.question), tiles(asked, event),
        make("p", { class: "caption" }, asked.known ? `other than the ${asked.known} known by now` : "nothing is known yet"))),
        event.questions.length > 4 ? make("p", { class: "caption" }, `and ${event.questions.length - 4} more at the same time`) : "");
    },
    labelling(event) {
      const names = event.features.map(([name]) => name);
      const said = names.length > MANY ? `${count(names.length)} features` : names.join(", ");
      byId("going").textContent = `Labelling examples with ${said} …`;
    },
    rest(event) {
      byId("asking").replaceChildren(make("p", { class: "caption" }, "Nothing."));
      byId("going").textContent = `The questions are asked. Labelling the other ${count(event.examples)} examples: ${count(event.answers)} answers so far …`;
      byId("usd").textContent = dollars(event.usd);
    },
    answer(event) {
      const said = event.features.length
        ? event.features.map(([name]) => name).join(", ")
        : { none: "nothing that it could name", refused: "refused", unreadable: "unreadable" }[event.verdict] ?? event.verdict;
      const line = make("li", {}, make("span", { class: "number" }, `${event.number}`), " ", make("bdi", {}, said), " ",
        make("span", { class: "caption" }, event.by));
      if (event.examples) line.append(tiles(event, event, event.features[0]?.[2] ?? []));
      byId("answers").prepend(line);
      while (byId("answers").childElementCount > SHOWN_ANSWERS) byId("answers").lastElementChild.remove();
    },
    feature(event) {
      const all = event.yes + event.no + event.unknown || 1;
      const marks = [event.given ? ["plain", `added by ${event.given}`] : event.counts ? ["good", "interesting and distinct"] : ["plain", "does not count"]];
      if (event.dropped) marks.push(["plain", event.dropped]);
      else if (event.twin) marks.push(["plain", event.twin]);
      const bar = make("meter", { min: 0, max: all, value: event.yes, "aria-label": `examples that have ${event.name}` });
      const card = make("li", { class: "feature" },
        make("header", {}, make("h3", {}, make("bdi", {}, event.name)),
          make("ul", { class: "marks" }, ...marks.map(([style, words]) => make("li", { class: style }, words)))),
        event.definition ? make("p", { class: "definition", dir: "auto" }, event.definition) : "",
        make("p", { class: "shares" }, make("strong", {}, `${Math.round((100 * event.yes) / Math.max(event.yes + event.no, 1))} %`),
          ` ${count(event.yes)} of ${count(event.yes + event.no)} have it${event.unknown ? `, ${count(event.unknown)} unknown` : ""}`), bar,
        finished ? "" : tools(event.name));
      cards.set(event.name, card);
      byId("list").prepend(card);
    },
    state(event) {
      byId("queries").textContent = count(event.queries);
      byId("features").textContent = count(event.features);
      byId("counting").textContent = count(event.counting);
      byId("g").textContent = event.g.toFixed(3);
      byId("known").textContent = event.given ? `, ${event.given} known` : "";
      byId("waiting").textContent = event.waiting ? `, ${count(event.waiting)} named and not labelled yet` : "";
      byId("usd").textContent = dollars(event.usd);
    },
    steered(event) {
      const line = make("li", {}, make("bdi", {}, event.by), " ", make("bdi", {}, event.words));
      if (event.rejected) line.append(make("span", { class: "bad" }, `, rejected: ${event.rejected}`));
      byId("answers").prepend(line);
      for (const gone of event.gone.map((name) => cards.get(name)).filter(Boolean)) {
        gone.classList.add("gone");
        gone.querySelector(".tools")?.remove();
        gone.querySelector(".marks").append(make("li", { class: "plain" }, "vetoed"));
      }
      for (const name of event.gone) cards.delete(name);
      if (event.action === "budget") byId("allowed").textContent = `of ${dollars(Number(event.usd))} allowed`;
    },
    waiting(event) {
      byId("going").textContent = event.whom ? `Waiting for ${event.whom}: ${event.message}` : "The answers are there: it goes on …";
    },
    ended(event) {
      byId("stop")?.remove();
      if (event.reason !== "interrupted") { // else it can be steered until it goes on
        byId("steer")?.remove();
        for (const card of cards.values()) card.querySelector(".tools")?.remove();
      }
      byId("asking").replaceChildren(make("p", { class: "caption" }, "Nothing."));
      byId("going").textContent = `It has ended: ${event.reason}. ${event.message}`.trim();
    },
  };

  const source = new EventSource(`/live/${key}/events`);
  source.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    show[event.kind]?.(event);
  });
  source.addEventListener("over", (message) => {
    source.close();
    const { finished, runs, state } = JSON.parse(message.data);
    byId("stop")?.remove();
    if (runs && !finished) {
      byId("going").textContent = "The questions are asked: it labels the other examples and writes its results …";
      setTimeout(() => location.reload(), 3000);
      return;
    }
    byId("again").hidden = false;
    if (finished) byId("going").replaceChildren("Finished: ", make("a", { href: `/runs/${key}` }, "look at the run"), ".");
    else byId("going").textContent = `It is ${state}. What you enter is applied when it goes on where it stopped.`;
  });
})();

// The examples that the page itself carries: which match, how many would, and in which order. What the studio does on
// its server (reports/browse) is done here in the same way.
function carriedCatalogue(data, sourceOf) {
  const count = data.ids.length;
  const MOST_VALUES = 12;
  const BINS = 12;
  const mask = (test) => Uint8Array.from({ length: count }, (_, place) => (test(place) ? 1 : 0));
  const among = (places) => { const set = new Set(places); return mask((place) => set.has(place)); };
  const percents = (line) => Array.from(line, (code) => data.percents[codeOf(code)]);
  function codeOf(letter) { const code = letter.charCodeAt(0); return code - 0x30 - (code > 0x5c ? 1 : 0); }

  const features = data.features.map(({ name, definition }, number) => {
    const labels = data.labels[number];
    const corrected = data.corrected[number];
    const marks = {
      yes: mask((place) => labels[place] === "1"),
      no: mask((place) => labels[place] === "0"),
      unknown: mask((place) => labels[place] === "-"),
      doubtful: among(data.doubtful[number]),
      contradicted: among(data.contradicted[number]),
      corrected: mask((place) => corrected[place] !== undefined),
      predicted: mask((place) => data.predicted[number][place] !== undefined && corrected[place] === undefined),
    };
    return { name, definition, marks, score: percents(data.scores[number]), doubt: percents(data.doubts[number]) };
  });
  const anyOf = Object.fromEntries(MARKS.map((mark) =>
    [mark, mask((place) => features.some((feature) => feature.marks[mark][place]))]));
  const columns = data.columns.map((column) => ({
    ...column,
    empty: mask((place) => (column.numbers ? column.numbers[place] === null : column.codes[place] < 0)),
  }));
  const numberText = (number) => String(Number(number.toPrecision(12)));
  const cellOf = (column, place) => (column.empty[place] ? ""
    : column.numbers ? numberText(column.numbers[place]) : column.values[column.codes[place]]);
  const span = (column) => {
    const known = column.numbers.filter((number) => number !== null);
    return [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
  };
  const sum = (set) => set.reduce((total, one) => total + one, 0);
  const both = (a, b) => { let total = 0; for (let i = 0; i < count; i++) total += a[i] & b[i]; return total; };

  function masksOf(choice) {
    const masks = new Map();
    for (const [mark, name] of choice.features) {
      const feature = features.find((one) => one.name === name);
      if (feature) masks.set(`${mark} ${name}`, feature.marks[mark]);
    }
    for (const mark of choice.any) masks.set(`any ${mark}`, anyOf[mark]);
    for (const column of columns) {
      const { name, numbers, codes, values, empty } = column;
      const [wanted, range] = [choice.values.get(name), choice.ranges.get(name)];
      if (!wanted && !range && !choice.empty.has(name)) continue;
      const low = range && range[0] !== "" ? Number(range[0]) : -Infinity;
      const high = range && range[1] !== "" ? Number(range[1]) : Infinity;
      masks.set(`column ${name}`, mask((place) => (empty[place] ? choice.empty.has(name)
        : numbers ? Boolean(range) && numbers[place] >= low && numbers[place] <= high
          : Boolean(wanted) && wanted.includes(values[codes[place]]))));
    }
    const words = choice.q.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 20);
    if (words.length) {
      masks.set("words ", mask((place) => {
        const searched = `${data.ids[place]}\n${data.texts ? data.texts[place] : ""}`.toLowerCase();
        return words.every((word) => searched.includes(word));
      }));
    }
    return masks;
  }

  function countsOf(column, choice, rows) {
    const empty = both(rows, column.empty);
    if (column.numbers) {
      const [low, high] = span(column);
      const bins = new Array(BINS).fill(0);
      column.numbers.forEach((number, place) => {
        if (number === null || !rows[place]) return;
        bins[Math.min(BINS - 1, high > low ? Math.floor(BINS * ((number - low) / (high - low))) : 0)] += 1;
      });
      return { bins, empty };
    }
    const counted = new Array(column.values.length).fill(0);
    column.codes.forEach((code, place) => { if (code >= 0 && rows[place]) counted[code] += 1; });
    const part = (choice.look.get(column.name) || "").toLowerCase();
    const ranked = counted.map((_, place) => place).filter((place) =>
      counted[place] && column.values[place].toLowerCase().includes(part)).sort((a, b) => counted[b] - counted[a] || a - b);
    const own = (choice.values.get(column.name) || []).map((value) => column.values.indexOf(value))
      .filter((place) => place >= 0).sort((a, b) => a - b);
    const listed = [...new Set([...ranked.slice(0, MOST_VALUES), ...own])];
    return {
      values: listed.map((place) => [column.values[place], counted[place]]),
      more: Math.max(0, ranked.length - MOST_VALUES), empty,
    };
  }

  // Twice the features in which an example differs from another; what is unknown of either counts half.
  const apart = (a, b) => (a === b ? -1 : data.labels.reduce((total, line) =>
    total + (line[a] === "-" || line[b] === "-" ? 1 : line[a] === line[b] ? 0 : 2), 0));
  const halves = (twice) => (twice === 1 ? "½" : `${Math.floor(twice / 2)}${twice % 2 ? "½" : ""}`);

  // The key of a place (NaN for none), what to say of it, and whether the largest come first.
  function sorting(sort) {
    const dot = sort.indexOf(".");
    const kind = dot < 0 ? sort : sort.slice(0, dot);
    const name = dot < 0 ? "" : sort.slice(dot + 1);
    const percent = (value) => (value < 0 ? "not asked" : `${value}\u00a0% ${kind === "score" ? "yes" : "doubt"}`);
    if (kind === "id") return { key: (place) => data.order[place], note: () => "" };
    const column = kind === "column" && columns.find((one) => one.name === name);
    if (column) {
      const key = (place) => (column.empty[place] ? NaN : (column.numbers || column.codes)[place]);
      return { key, note: (place) => cellOf(column, place) || "no value" };
    }
    const feature = (kind === "score" || kind === "doubt") && features.find((one) => one.name === name);
    const of = feature ? (place) => feature[kind][place]
      : kind === "doubt" && !name && features.length ? (place) => Math.max(...features.map((one) => one.doubt[place])) : null;
    if (of) return { key: (place) => (of(place) < 0 ? NaN : of(place)), note: (place) => percent(of(place)), down: true };
    const near = kind === "near" ? data.ids.indexOf(name) : -1;
    if (near >= 0) {
      return { key: (place) => apart(near, place), note: (place) => (place === near ? "itself" : `differs in ${halves(apart(near, place))} of ${features.length}`) };
    }
    return null;
  }

  function ordered(choice, places) {
    const by = sorting(choice.sort);
    if (!by) return choice.reverse ? places.reverse() : places;
    const sign = Boolean(by.down) === choice.reverse ? 1 : -1;
    const keys = places.map(by.key);
    return places.map((_, at) => at).sort((a, b) =>
      Number.isNaN(keys[a]) - Number.isNaN(keys[b]) || sign * (keys[a] - keys[b]) || places[a] - places[b]).map((at) => places[at]);
  }

  const matchesOf = (fails) => { const places = []; for (let i = 0; i < count; i++) if (!fails[i]) places.push(i); return places; };
  function failsOf(masks) {
    const fails = new Int32Array(count);
    for (const set of masks.values()) for (let i = 0; i < count; i++) fails[i] += 1 - set[i];
    return fails;
  }

  function tileOf(choice, note) {
    const chosen = features.filter(({ name }) => isChosen(choice, "yes", name) || isChosen(choice, "no", name));
    return (place) => ({
      place, id: data.ids[place], text: data.texts ? data.texts[place] : "", note: note(place),
      predicted: chosen.some((feature) => feature.marks.predicted[place]),
    });
  }

  function find(choice, start, wanted) {
    const masks = masksOf(choice);
    const fails = failsOf(masks);
    const matching = mask((place) => !fails[place]);
    const without = (...facets) => {
      const own = facets.map((name) => masks.get(name)).filter(Boolean);
      return own.length ? mask((place) => own.reduce((rest, set) => rest - (1 - set[place]), fails[place]) === 0) : matching;
    };
    const order = ordered(choice, matchesOf(fails));
    const by = sorting(choice.sort);
    return {
      total: count,
      matching: order.length,
      features: features.map(({ name, marks }) => {
        const sides = without(`yes ${name}`, `no ${name}`, `unknown ${name}`);
        return OF_A_FEATURE.map((mark) =>
          both(marks[mark], ["yes", "no", "unknown"].includes(mark) ? sides : without(`${mark} ${name}`)));
      }),
      any: MARKS.map((mark) => both(anyOf[mark], without(`any ${mark}`))),
      columns: columns.map((column) => countsOf(column, choice, without(`column ${column.name}`))),
      tiles: order.slice(start, start + wanted).map(tileOf(choice, by ? by.note : () => "")),
      ignored: ignoredOf(choice),
    };
  }

  function ignoredOf(choice) {
    const missing = choice.features.map(([, name]) => name).filter((name) => !features.some((one) => one.name === name));
    for (const name of new Set([...choice.values.keys(), ...choice.empty, ...choice.ranges.keys()])) {
      const column = columns.find((one) => one.name === name);
      if (!column) missing.push(name);
      else if (column.values) {
        missing.push(...(choice.values.get(name) || []).filter((value) => !column.values.includes(value)).map((value) => `${name}: ${value}`));
      }
    }
    return [...new Set(missing)];
  }

  function wordsOn(number, place) {
    const corrector = data.corrected[number][place];
    if (corrector !== undefined) return `corrected by ${corrector}`;
    const chance = data.predicted[number][place];
    if (chance !== undefined) return `predicted, ${chance}\u00a0% yes`;
    const [yes, no, abstained] = data.tallies[data.votes[number][place]];
    const said = [[yes, "yes"], [no, "no"], [abstained, "abstained"]].filter(([votes]) => votes);
    return said.map(([votes, word]) => `${votes} ${word}`).join(", ") || "no votes";
  }

  function example(place) {
    return {
      place, id: data.ids[place], text: data.texts ? data.texts[place] : "", pictured: data.pictured,
      labels: features.map(({ marks }, number) => ({
        label: marks.yes[place] ? "yes" : marks.no[place] ? "no" : "unknown", words: wordsOn(number, place),
        doubtful: Boolean(marks.doubtful[place]), contradicted: Boolean(marks.contradicted[place]),
      })),
      columns: columns.map((column) => [column.name, cellOf(column, place)]),
    };
  }

  return {
    about: {
      total: count, pictured: data.pictured, texts: data.texts !== null, embedded: false,
      features: features.map(({ name, definition, marks }) => ({ name, definition, marks: OF_A_FEATURE.map((mark) => sum(marks[mark])) })),
      any: MARKS.map((mark) => sum(anyOf[mark])),
      columns: columns.map((column) => (column.numbers
        ? { name: column.name, low: span(column)[0], high: span(column)[1] } : { name: column.name, distinct: column.values.length })),
    },
    find,
    matching: (choice) => matchesOf(failsOf(masksOf(choice))).map((place) => ({ place, id: data.ids[place] })),
    named: (names) => names.map((id) => ({ place: data.ids.indexOf(id), id })).filter(({ place }) => place >= 0),
    example: (wanted) => (typeof wanted === "number" ? (wanted >= 0 && wanted < count ? example(wanted) : null)
      : data.ids.includes(wanted) ? example(data.ids.indexOf(wanted)) : null),
    source: sourceOf,
    featureLink: (number) => `#feature-${number + 1}`,
    exports: { ids: (selected) => download(`${selected.map(({ id }) => id).join("\n")}\n`) },
  };
}

function download(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = make("a", { href: address, download: "ids.txt" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// What is chosen, as the address holds it: #yes=glasses&no=beard&is.colour=red&q=dog&sort=doubt&example=face-001
const MARKS = ["unknown", "doubtful", "contradicted", "corrected", "predicted"];
const OF_A_FEATURE = ["yes", "no", ...MARKS];
const SIZES = 5;
const USUAL_SIZE = 2;
const MOST_LINKED = 200; // examples that are selected and named in the address

const nothingChosen = () => ({
  features: [], any: [], values: new Map(), empty: new Set(), ranges: new Map(), look: new Map(),
  q: "", sort: "order", reverse: false, size: USUAL_SIZE, example: null, selected: [],
});

function readChoice(text) {
  const choice = nothingChosen();
  for (const [key, value] of new URLSearchParams(text)) {
    const dot = key.indexOf(".");
    const kind = dot < 0 ? key : key.slice(0, dot);
    const name = key.slice(dot + 1);
    if (dot < 0) {
      if (OF_A_FEATURE.includes(kind)) choice.features.push([kind, value]);
      else if (kind === "any" && MARKS.includes(value)) choice.any.push(value);
      else if (kind === "q" || kind === "sort" || kind === "example") choice[kind] = value;
      else if (kind === "reverse") choice.reverse = value === "1";
      else if (kind === "size") choice.size = Math.min(Math.max(Math.round(Number(value)) || USUAL_SIZE, 1), SIZES);
      else if (kind === "selected") choice.selected.push(value);
    } else if (kind === "is") choice.values.set(name, [...new Set([...(choice.values.get(name) || []), value])]);
    else if (kind === "empty") choice.empty.add(name);
    else if ((kind === "from" || kind === "to") && value.trim() !== "" && Number.isFinite(Number(value))) {
      const range = choice.ranges.get(name) || ["", ""];
      range[kind === "from" ? 0 : 1] = value;
      choice.ranges.set(name, range);
    } else if (kind === "look") choice.look.set(name, value);
  }
  return choice;
}

// `shown`: with what only the page needs; else what examples are found by.
function writeChoice(choice, shown = true) {
  const address = new URLSearchParams();
  for (const [mark, name] of choice.features) address.append(mark, name);
  for (const mark of choice.any) address.append("any", mark);
  for (const [name, values] of choice.values) for (const value of values) address.append(`is.${name}`, value);
  for (const name of choice.empty) address.append(`empty.${name}`, "1");
  for (const [name, [low, high]] of choice.ranges) {
    if (low !== "") address.append(`from.${name}`, low);
    if (high !== "") address.append(`to.${name}`, high);
  }
  if (choice.q) address.append("q", choice.q);
  if (choice.sort !== "order") address.append("sort", choice.sort);
  if (choice.reverse) address.append("reverse", "1");
  if (!shown) {
    for (const [name, part] of choice.look) if (part) address.append(`look.${name}`, part);
    return address.toString();
  }
  if (choice.size !== USUAL_SIZE) address.append("size", choice.size);
  if (choice.selected.length <= MOST_LINKED) for (const name of choice.selected) address.append("selected", name);
  if (choice.example !== null) address.append("example", choice.example);
  return address.toString();
}

const isChosen = (choice, mark, name) => choice.features.some(([one, of]) => one === mark && of === name);

// Yes, no and unknown take one another's place; other marks of a feature are chosen beside them.
function toggleFeature(choice, mark, name) {
  const was = isChosen(choice, mark, name);
  const sides = ["yes", "no", "unknown"];
  choice.features = choice.features.filter(([one, of]) =>
    of !== name || (one !== mark && !(sides.includes(mark) && sides.includes(one))));
  if (!was) choice.features.push([mark, name]);
}

function toggleValue(choice, name, value) {
  const values = choice.values.get(name) || [];
  const kept = values.filter((one) => one !== value);
  if (kept.length === values.length) kept.push(value);
  if (kept.length) choice.values.set(name, kept);
  else choice.values.delete(name);
}

const toggled = (list, one) => (list.includes(one) ? list.filter((other) => other !== one) : [...list, one]);

const choosesSomething = (choice) => Boolean(choice.features.length || choice.any.length || choice.values.size ||
  choice.empty.size || choice.ranges.size || choice.q || /^(near|embedding)\./.test(choice.sort));

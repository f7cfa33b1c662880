// Features and examples as a grid of cells, in the orders that `data` gives; `open` is called with a feature and an example.
function makeMatrix(canvas, data, { picture, open, point = () => {} }) {
  const HEAD = 14; // pixels of the row of pictures
  const ROW = 14;
  const PICTURED = 150; // examples up to which their pictures stand above the columns
  const context = canvas.getContext("2d");
  const { features, examples, labels, names } = data;
  const pictured = picture && examples.length <= PICTURED;
  const images = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let left = 0;
  let cell = 0;
  let over = null;

  function draw() {
    const scale = window.devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth;
    const height = HEAD + ROW * features.length;
    const font = `11px ${colour("--sans")}`;
    context.font = font;
    left = Math.min(width / 3, 8 + Math.max(0, ...names.map((name) => context.measureText(name).width)));
    cell = (width - left) / Math.max(examples.length, 1);
    Object.assign(canvas, { width: width * scale, height: height * scale });
    canvas.style.height = `${height}px`;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const [has, empty, unknown, words, strong] = ["--yes", "--wash", "--line", "--soft", "--ink"].map(colour);
    const gap = cell > 3 ? 1 : 0;
    features.forEach((feature, row) => {
      const y = HEAD + ROW * row;
      context.font = font;
      context.textAlign = "right";
      context.fillStyle = over?.row === row ? strong : words;
      context.fillText(names[feature], left - 6, y + 11, left - 8);
      context.fillStyle = empty;
      context.fillRect(left, y, width - left, ROW - 1);
      const of = labels[feature];
      examples.forEach((example, column) => {
        if (of[example] === "0") return;
        context.fillStyle = of[example] === "1" ? has : unknown;
        context.fillRect(left + column * cell, y, Math.max(cell - gap, 0.5), ROW - 1);
      });
    });
    if (pictured) examples.forEach((example, column) => {
      const image = load(example);
      const edge = Math.min(cell, HEAD - 1);
      if (image.complete && image.naturalWidth) context.drawImage(image, left + column * cell + (cell - edge) / 2, 0, edge, edge);
    });
    if (over) {
      context.strokeStyle = strong;
      context.strokeRect(left + over.column * cell - 0.5, 0.5, Math.max(cell, 2), height - 1);
    }
  }
  function load(example) {
    if (!images.has(example)) {
      const image = new Image();
      image.addEventListener("load", later);
      image.src = picture(example);
      images.set(example, image);
    }
    return images.get(example);
  }
  let waiting = 0;
  function later() { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw); }
  function place(event) {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - HEAD) / ROW);
    const column = Math.floor((event.clientX - box.left - left) / cell);
    return features[row] === undefined || examples[column] === undefined ? null : { row, column };
  }
  canvas.addEventListener("pointermove", (event) => {
    over = place(event);
    point(over && { feature: features[over.row], example: examples[over.column] });
    later();
  });
  canvas.addEventListener("pointerleave", () => { over = null; point(null); later(); });
  canvas.addEventListener("click", (event) => { const at = place(event); if (at) open(features[at.row], examples[at.column]); });
  new ResizeObserver(later).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
}

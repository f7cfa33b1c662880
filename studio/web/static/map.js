// The examples as points: near ones are alike. Those that have the chosen feature stand out; `picture` gives the address
// of an example's picture, or nothing, and `open` shows it.
function makeMap(canvas, data, { picture, open, point = () => {} }) {
  const PICTURED = 400; // examples up to which their pictures are drawn
  const RADIUS = 9; // within which a point is pointed at
  const context = canvas.getContext("2d");
  const count = data.ids.length;
  const pictured = picture && count <= PICTURED;
  const images = new Map();
  let chosen = -1;
  let over = -1;
  let size = 0;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const side = () => (pictured ? Math.max(14, Math.min(34, size / Math.sqrt(count) / 1.2)) : Math.max(2, Math.min(7, size / Math.sqrt(count) / 4)));
  const label = (place) => (chosen < 0 ? "1" : data.labels[chosen][place]);
  const at = (place, room) => [room + data.x[place] * (size - 2 * room), room + data.y[place] * (size - 2 * room)];

  function load(place) {
    if (!images.has(place)) {
      const image = new Image();
      image.addEventListener("load", later);
      image.src = picture(place);
      images.set(place, image);
    }
    return images.get(place);
  }
  let waiting = 0;
  function later() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  }
  function draw() {
    size = canvas.clientWidth;
    const scale = window.devicePixelRatio || 1;
    canvas.width = canvas.height = size * scale;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const [has, lacks, line, ring] = ["--yes", "--no-pale", "--line", "--ink"].map(colour);
    const edge = side();
    const order = [...Array(count).keys()].sort((a, b) => Number(label(a) === "1") - Number(label(b) === "1"));
    for (const place of over < 0 ? order : [...order, over]) {
      const [x, y] = at(place, edge / 2 + 3);
      const yes = label(place) === "1";
      const shade = yes ? has : label(place) === "0" ? lacks : line;
      context.globalAlpha = yes || place === over ? 1 : pictured ? 0.35 : 0.7;
      const image = pictured ? load(place) : null;
      if (image?.complete && image.naturalWidth) {
        const cut = Math.min(image.naturalWidth, image.naturalHeight);
        context.drawImage(image, (image.naturalWidth - cut) / 2, (image.naturalHeight - cut) / 2, cut, cut, x - edge / 2, y - edge / 2, edge, edge);
        context.lineWidth = 2;
        context.strokeStyle = place === over ? ring : shade;
        context.strokeRect(x - edge / 2, y - edge / 2, edge, edge);
      } else {
        context.fillStyle = place === over ? ring : shade;
        context.beginPath();
        context.arc(x, y, pictured ? 4 : edge, 0, 7);
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const edge = side();
    let found = -1;
    let least = (RADIUS + edge / 2) ** 2;
    for (let place = 0; place < count; place++) {
      const [x, y] = at(place, edge / 2 + 3);
      const distance = (x - event.clientX + box.left) ** 2 + (y - event.clientY + box.top) ** 2;
      if (distance < least) [found, least] = [place, distance];
    }
    return found;
  }
  function pointAt(place) {
    if (place === over) return;
    over = place;
    canvas.style.cursor = place < 0 ? "" : "pointer";
    point(place);
    later();
  }
  canvas.addEventListener("pointermove", (event) => pointAt(nearest(event)));
  canvas.addEventListener("pointerleave", () => pointAt(-1));
  canvas.addEventListener("click", (event) => { const place = nearest(event); if (place >= 0) open(place); });
  new ResizeObserver(later).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  return { choose(number) { chosen = Number.isInteger(number) && number < data.labels.length ? number : -1; later(); } };
}

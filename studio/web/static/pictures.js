// Pictures: read when the first one is needed, given to an image when it comes near the window.
// `source` is the address of a place and a size, or nothing; `beside` whether a text stands beside each picture.
function makePictures(source, beside) {
  function give(image) {
    const url = source(Number(image.dataset.picture), image.closest(".large") ? "large" : "small");
    const missing = () => {
      if (beside) image.remove();
      else image.closest(".tile, .large")?.classList.add("missing");
    };
    image.addEventListener("error", missing, { once: true });
    if (url) image.src = url;
    else missing();
    image.removeAttribute("data-picture");
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      if (target.dataset.picture) give(target);
    }
  }, { rootMargin: "600px" });
  const waiting = (root) => root.querySelectorAll("img[data-picture]");
  return {
    watch: (root) => waiting(root).forEach((image) => near.observe(image)),
    giveAll: (root) => waiting(root).forEach(give),
  };
}

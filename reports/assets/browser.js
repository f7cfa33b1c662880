// Which examples match a choice of features. Sets are bit strings, 32 examples to a word.
function makeBrowser(labels, count) {
  const words = Math.ceil(count / 32);
  const all = new Uint32Array(words);
  for (let i = 0; i < count; i++) all[i >>> 5] |= 1 << (i & 31);
  const sets = labels.map((line) => {
    const yes = new Uint32Array(words);
    const no = new Uint32Array(words);
    for (let i = 0; i < count; i++) {
      const value = line.charCodeAt(i);
      if (value === 49) yes[i >>> 5] |= 1 << (i & 31);
      else if (value === 48) no[i >>> 5] |= 1 << (i & 31);
    }
    return { yes, no };
  });

  function intersect(choice, except) {
    const result = all.slice();
    for (const [feature, side] of choice) {
      if (feature === except) continue;
      const set = sets[feature][side];
      for (let w = 0; w < words; w++) result[w] &= set[w];
    }
    return result;
  }

  function shared(a, b) {
    let total = 0;
    for (let w = 0; w < words; w++) {
      let word = a[w] & b[w];
      word -= (word >>> 1) & 0x55555555;
      word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
      total += (((word + (word >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
    }
    return total;
  }

  function members(set) {
    const found = [];
    for (let i = 0; i < count; i++) if (set[i >>> 5] & (1 << (i & 31))) found.push(i);
    return found;
  }

  // How many examples would match if a feature were chosen as yes or as no, the rest of the choice as it is.
  function counts(choice) {
    const matching = intersect(choice);
    return sets.map((set, feature) => {
      const others = choice.has(feature) ? intersect(choice, feature) : matching;
      return { yes: shared(others, set.yes), no: shared(others, set.no) };
    });
  }

  return { matches: (choice) => members(intersect(choice)), counts };
}

addEventListener('load', () => setTimeout(() => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} px wide in ${root.clientWidth}`);
  for (const svg of document.querySelectorAll('svg')) {
    const box = svg.getBoundingClientRect();
    if (box.width === 0) continue;
    const texts = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([words, own], place) => {
      const isCut = own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 2 || own.bottom > box.bottom + 2;
      if (isCut) faults.push(`cut: ${words}`);
      for (const [other, theirs] of texts.slice(place + 1)) {
        const across = Math.min(own.right, theirs.right) - Math.max(own.left, theirs.left);
        const down = Math.min(own.bottom, theirs.bottom) - Math.max(own.top, theirs.top);
        if (across > 1 && down > 3) faults.push(`${words} lies on ${other}`);
      }
    });
  }
  parent.postMessage(faults, '*');
}, 100));

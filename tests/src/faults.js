// What is wrong with the page that this stands in, said to the page around it.
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

  // Contrast as WCAG 2.2 defines it, success criterion 1.4.3: 4.5 at least. Colours are [red, green, blue, opacity].
  const parts = (colour) => (colour === 'none' ? [0, 0, 0, 0] : colour.match(/[\d.]+/g).map(Number));
  const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => rgb.map(linear).reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  const behind = (element) => {
    if (!element) return isDark ? [18, 18, 18] : [255, 255, 255];
    return over(parts(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  };
  // Behind text of a picture are its own outline, else the rectangles before it, one over the other.
  const drawnBehind = (text) => {
    const style = getComputedStyle(text);
    const page = behind(text.ownerSVGElement);
    if (style.stroke !== 'none') return over(parts(style.stroke), page);
    const box = text.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const shapes = [...text.ownerSVGElement.querySelectorAll('rect')].filter((shape) => {
      const own = shape.getBoundingClientRect();
      const isBefore = text.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_PRECEDING;
      return isBefore && own.left < x && x < own.right && own.top < y && y < own.bottom;
    });
    return shapes.reduce((ground, shape) => {
      const { fill, fillOpacity, opacity } = getComputedStyle(shape);
      const [r, g, b, a = 1] = parts(fill);
      return over([r, g, b, a * fillOpacity * opacity], ground);
    }, page);
  };
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    const words = own.map((node) => node.textContent).join(' ').trim().slice(0, 40);
    const isShown = words && element.getBoundingClientRect().width > 0 && getComputedStyle(element).visibility === 'visible';
    if (!isShown || element.closest('script, style, option, title, desc')) continue;
    const style = getComputedStyle(element);
    if (style.overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1) faults.push(`cut: ${words}`);
    const isDrawn = element instanceof SVGElement;
    const ground = isDrawn ? drawnBehind(element) : behind(element);
    const lights = [luminance(over(parts(isDrawn ? style.fill : style.color), ground)), luminance(ground)];
    const contrast = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    if (contrast < 4.5) faults.push(`contrast of ${contrast.toFixed(1)}: ${words}`);
  }
  parent.postMessage([window.name, ...new Set(faults)], '*');
}, 100));

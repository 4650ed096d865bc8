// The chosen theme, before anything is painted; without a choice the system's own applies.
(function () {
  try {
    const chosen = localStorage.getItem("kbgym-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    /* storage may be closed to us; the system's theme is fine */
  }
})();

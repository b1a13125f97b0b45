(() => {
	"use strict";
	const root = document.documentElement;
	root.classList.add("js");
	const $ = (id) => document.getElementById(id);
	const files = Array.from(document.querySelectorAll("details.file"));
	const keep = (key, value) => { try { if (value === undefined) return localStorage.getItem(key); localStorage.setItem(key, value); } catch (e) { return null; } };

	// light and dark
	const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
	const saved = keep("superqode-theme");
	if (saved === "dark" || saved === "light") root.dataset.theme = saved;
	const theme = () => { root.dataset.theme = dark() ? "light" : "dark"; keep("superqode-theme", root.dataset.theme); };

	// filters
	const links = new Map(Array.from(document.querySelectorAll(".tree a[data-f]"), (a) => [a.dataset.f, a.parentElement]));
	const filter = () => {
		const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
		const agent = $("agent") ? $("agent").value : "";
		const type = $("type").value;
		let shown = 0;
		for (const f of files) {
			const hit = words.every((w) => f.dataset.path.includes(w)) && (!agent || f.dataset.agents.split(" ").includes(agent)) && (!type || f.dataset.type === type);
			f.hidden = !hit;
			const li = links.get(f.id);
			if (li) li.hidden = !hit;
			if (hit) shown++;
		}
		const folders = Array.from(document.querySelectorAll(".tree li:has(> details)")).reverse();
		for (const li of folders) li.hidden = !li.querySelector("li:not([hidden]) > a");
		$("count").value = shown + " of " + files.length;
		$("none").hidden = shown > 0;
	};

	// unified and side by side: the second copy of the unchanged lines is made for
	// what is unfolded only
	const twins = (file) => {
		if (!root.classList.contains("split") || file.dataset.twins) return;
		file.dataset.twins = "1";
		for (const line of file.querySelectorAll(".l:not(.a):not(.d)")) {
			const twin = line.lastElementChild.cloneNode(true);
			twin.classList.add("twin");
			twin.setAttribute("aria-hidden", "true");
			line.append(twin);
		}
	};
	const split = (on) => {
		root.classList.toggle("split", on);
		$("split").setAttribute("aria-pressed", String(on));
		$("unified").setAttribute("aria-pressed", String(!on));
		for (const f of files) if (f.open) twins(f);
	};
	const fold = (open) => { for (const f of files) if (!f.hidden) f.open = open; };

	if (files.length) {
		$("q").addEventListener("input", filter);
		$("type").addEventListener("change", filter);
		if ($("agent")) $("agent").addEventListener("change", filter);
		$("split").addEventListener("click", () => split(true));
		$("unified").addEventListener("click", () => split(false));
		$("unfold").addEventListener("click", () => fold(true));
		$("foldall").addEventListener("click", () => fold(false));
		for (const f of files) f.addEventListener("toggle", () => { if (f.open) twins(f); });
		if (matchMedia("(max-width: 900px)").matches && files.length > 8) $("treebox").open = false;
	}

	// what a link leads to is unfolded
	const reveal = () => {
		let target = null;
		try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch (e) { return; }
		if (!target) return;
		for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
		target.scrollIntoView();
		const focus = target.querySelector("summary");
		if (focus) focus.focus({ preventScroll: true });
	};
	addEventListener("hashchange", reveal);
	if (location.hash) reveal();

	// copying
	const copied = (button) => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
	document.addEventListener("click", (ev) => {
		const button = ev.target.closest("button[data-copy]");
		if (!button) return;
		const fallback = () => {
			const range = document.createRange();
			range.selectNodeContents(button.previousElementSibling);
			getSelection().removeAllRanges();
			getSelection().addRange(range);
			if (document.execCommand("copy")) copied(button);
		};
		if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.copy).then(() => copied(button), fallback);
		else fallback();
	});

	// keyboard
	const step = (list, by) => {
		const visible = list.filter((e) => !e.hidden);
		if (!visible.length) return;
		const now = visible.findIndex((e) => e.contains(document.activeElement));
		const next = visible[Math.max(0, Math.min(visible.length - 1, now < 0 ? (by > 0 ? 0 : visible.length - 1) : now + by))];
		next.scrollIntoView({ block: "start" });
		(next.querySelector("summary") || next).focus({ preventScroll: true });
	};
	const finding = () => {
		const list = Array.from(document.querySelectorAll("article.finding"));
		for (const a of list) a.tabIndex = -1;
		step(list, 1);
	};
	const keys = {
		j: () => step(files, 1), k: () => step(files, -1), f: finding, t: theme,
		o: () => { const f = document.activeElement.closest("details"); if (f) f.open = !f.open; },
		e: () => fold(true), c: () => fold(false),
		s: () => { if (files.length) split(!root.classList.contains("split")); },
		"/": () => { if ($("q")) $("q").focus(); },
		"?": () => $("keys").showModal(),
	};
	document.addEventListener("keydown", (ev) => {
		if (ev.ctrlKey || ev.metaKey || ev.altKey || $("keys").open) return;
		const tag = ev.target.tagName;
		if (tag === "INPUT" || tag === "SELECT" || tag === "TEXTAREA") {
			if (ev.key === "Escape") ev.target.blur();
			return;
		}
		if (!keys[ev.key]) return;
		ev.preventDefault();
		keys[ev.key]();
	});
	$("theme").addEventListener("click", theme);
	$("help").addEventListener("click", () => $("keys").showModal());
	addEventListener("beforeprint", () => { for (const f of document.querySelectorAll("details.run")) f.open = true; });
})();

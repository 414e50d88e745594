// Which agents are asked: one, and others beside it if somebody ticks them.
"use strict";

{
  const { badge, byId, code, el, folded, json, pairs, TASKS } = Turinglike;

  const PICTURED = ["color_estimation", "object_detection", "attention_prediction", "image_captioning"];

  /** What a task is about: agents that are asked side by side are asked about the same. */
  const material = (task) => (PICTURED.includes(task) ? "picture" : task);

  const keyOf = ({ agent, task }) => `${task} ${agent.name}`;

  /** `changed` is called whenever other agents or another task are chosen. */
  class Choice {
    constructor(changed) {
      this.changed = changed;
      this.agents = [];
      this.ticked = new Set();
      this.listed = "";
      byId("agent").addEventListener("change", () => this.choose(false));
      byId("task").addEventListener("change", () => this.chooseTask());
      byId("other-agents").addEventListener("change", ({ target }) => this.tick(target));
    }

    /** The agent of the list, undefined before there is one. */
    get agent() {
      return this.agents.find((agent) => agent.name === byId("agent").value);
    }

    get task() {
      return byId("task").value;
    }

    /** All that are asked, as pairs of an agent and its task, that of the list first. */
    get all() {
      const others = this.others().filter((other) => this.ticked.has(keyOf(other)));
      return [{ agent: this.agent, task: this.task }, ...others];
    }

    /** All pairs that may be asked beside the first, task by task. */
    others() {
      const first = keyOf({ agent: this.agent, task: this.task });
      const found = Object.keys(TASKS)
        .filter((task) => material(task) === material(this.task))
        .flatMap((task) => this.agents.filter(({ tasks }) => tasks.includes(task)).map((agent) => ({ agent, task })));
      return found.filter((other) => keyOf(other) !== first);
    }

    /** Show the agents as the server tells them now. */
    list(agents) {
      if (JSON.stringify(agents) === JSON.stringify(this.agents)) return; // a list that is open would close
      this.agents = agents;
      const select = byId("agent");
      const before = select.value;
      const groups = new Map();
      for (const agent of agents) {
        const group = agent.tasks.length > 1 ? "Several tasks" : TASKS[agent.tasks[0]];
        const how = agent.state === "ready" ? "" : ` (${agent.state})`;
        const option = el("option", { value: agent.name }, `${agent.name}${how}`);
        groups.set(group, [...(groups.get(group) ?? []), option]);
      }
      select.replaceChildren(...[...groups].map(([label, options]) => el("optgroup", { label }, options)));
      if (agents.some((agent) => agent.name === before)) select.value = before;
      this.choose(select.value === before);
    }

    choose(isSame) {
      const agent = this.agent;
      if (agent === undefined) return;
      describe(agent);
      if (!isSame || this.task === "") {
        const before = this.task;
        byId("task").replaceChildren(...agent.tasks.map((name) => el("option", { value: name }, TASKS[name])));
        if (agent.tasks.includes(before)) byId("task").value = before;
        byId("task-field").hidden = agent.tasks.length < 2;
      }
      this.chooseTask();
    }

    chooseTask() {
      const others = this.others();
      const listed = others.map(keyOf).join("\n");
      if (listed !== this.listed) this.listOthers(others); // otherwise a box that has the focus would lose it
      this.listed = listed;
      byId("others-field").hidden = others.length === 0;
      this.count();
      this.changed();
    }

    listOthers(others) {
      const byTask = new Map();
      for (const other of others) {
        const box = el("input", { type: "checkbox", value: keyOf(other), checked: this.ticked.has(keyOf(other)) });
        const choice = el("label.choice", box, " ", other.agent.name);
        byTask.set(other.task, [...(byTask.get(other.task) ?? []), choice]);
      }
      const groups = [...byTask].map(([task, choices]) => el("fieldset", el("legend", TASKS[task]), choices));
      byId("other-agents").replaceChildren(...groups);
    }

    tick(box) {
      if (box.checked) this.ticked.add(box.value);
      else this.ticked.delete(box.value);
      this.count();
      this.changed();
    }

    count() {
      const beside = this.all.length - 1;
      byId("others-summary").textContent = `Ask other agents the same${beside ? ` (${beside} chosen)` : ""}`;
    }
  }

  function describe(agent) {
    const about = byId("agent-about");
    const open = about.querySelector("details")?.open ?? false;
    const kind = agent.state === "ready" ? "good" : agent.state === "failed" ? "alert" : "";
    const badges = [
      badge(agent.state, kind),
      agent.state === "not loaded" && [" ", badge("loads when it is first asked")],
      agent.kind === "control" && [" ", badge("control: odd by design", "warn")],
    ];
    const rows = [["checkpoint", agent.checkpoint ? code(agent.checkpoint) : "none"]];
    if (agent.revision) rows.push(["revision", code(agent.revision)]);
    rows.push(["digest", code(agent.digest)]);
    const more = folded("About this agent", pairs(rows), json(agent.settings, "Settings"));
    more.open = open;
    const tasks = el("p", badges, " ", agent.tasks.map((name) => TASKS[name]).join(", "));
    about.replaceChildren(tasks, el("p.bad", agent.error), more);
  }

  Object.assign(Turinglike, { Choice, material });
}

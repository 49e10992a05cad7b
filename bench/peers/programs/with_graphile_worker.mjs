// graphile-worker as its page about performance sets it up: `with_graphile_worker.mjs URL TASKS SINGLY`; one line of JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// From the folder in which npm has put it, which is where this is run.
const require = createRequire(`${process.cwd()}/`);
const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { version } = JSON.parse(readFileSync(`${process.cwd()}/node_modules/graphile-worker/package.json`));

const [connectionString, tasks, singly] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const silent = new Logger(() => () => {});
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};

const seconds = async (work) => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
};

const producer = await makeWorkerUtils({ preset, logger: silent });
await producer.migrate();
const oneByOne = await seconds(async () => {
  for (let number = 0; number < singly; number += 1) await producer.addJob("noop", {});
});
const bulk = await seconds(async () => {
  for (let first = singly; first < tasks; first += 500) {
    const count = Math.min(500, tasks - first);
    await producer.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: {} })));
  }
});
await producer.release();

let ran = 0;
let allRan;
const ended = new Promise((resolve) => { allRan = resolve; });
const began = performance.now();
const noop = async () => {
  ran += 1;
  if (ran === tasks) allRan((performance.now() - began) / 1000);
};
const runner = await run({ preset, logger: silent, noHandleSignals: true, taskList: { noop } });
const drain = await ended;
await runner.stop();
console.log(JSON.stringify({ single: singly / oneByOne, bulk: (tasks - singly) / bulk, drain: tasks / drain, version }));
process.exit(0);

import assert from "node:assert/strict";
import { test } from "node:test";
import { lanes, trafficMatrix, type MemberEvent, type Traffic } from "../../src/lib/accounts";

const event = (event: string, worker: number | null, epoch: number): MemberEvent => ({ t: 0, event, worker, epoch });
const place = (e: MemberEvent): number => e.epoch ?? NaN;

test("AWorkerThatIsLostAndComesBackHasTwoStretches", () => {
  const [one, two] = lanes([event("started", null, 0), event("lost", 1, 0.5), event("joined", 1, 1.5)], 2, 2, place);
  assert.deepEqual(one, [{ from: 0, to: 2, silent: false }]);
  assert.deepEqual(two, [{ from: 0, to: 0.5, silent: false }, { from: 1.5, to: 2, silent: false }]);
});

test("AnAbsentWorkerBeginsWhereItJoins", () => {
  const [one] = lanes([event("started", null, 0), event("absent", 0, 0), event("joined", 0, 0.25)], 1, 1, place);
  assert.deepEqual(one, [{ from: 0.25, to: 1, silent: false }]);
});

test("ASilenceIsAStretchOfItsOwn", () => {
  const [one] = lanes([event("started", null, 0), event("silent", 0, 1), event("heard", 0, 1.5)], 1, 2, place);
  assert.deepEqual(one, [{ from: 0, to: 1, silent: false }, { from: 1, to: 1.5, silent: true }, { from: 1.5, to: 2, silent: false }]);
});

test("AResumedSessionCutsWhatLaterEventsAnEarlierOneHad", () => {
  // The first session came to 1.8 and lost the worker at 1.2; the second one begins at 1.
  const [one] = lanes([event("started", null, 0), event("lost", 0, 1.2), event("started", null, 1)], 1, 1.6, place);
  assert.deepEqual(one, [{ from: 0, to: 1, silent: false }, { from: 1, to: 1.6, silent: false }]);
});

test("EventsOfUnknownWorkersOrPlacesChangeNothing", () => {
  assert.deepEqual(lanes([event("lost", 7, 1), event("lost", null, 1), { ...event("lost", 0, 1), epoch: null }], 1, 2, place), [[{ from: 0, to: 2, silent: false }]]);
});

test("TheMatrixHasTheMembersThatAnythingWentToAndItsSumsAreTheBytes", () => {
  const rows: Traffic[][] = [[["exchange", 1, 10], ["peer", 1, 5]], [["exchange", 0, 7], ["collective", null, 2]]];
  const { columns, cells, purposes } = trafficMatrix(rows, "");
  assert.deepEqual(columns, ["worker 1", "server 0", "server 1", "group"]);
  assert.deepEqual([...cells], [5, 0, 10, 0, 0, 7, 0, 2]);
  assert.deepEqual(Object.fromEntries(purposes), { exchange: 17, peer: 5, collective: 2 });
  const peers = trafficMatrix(rows, "peer");
  assert.deepEqual(peers.columns, ["worker 1"]);
  assert.deepEqual([...peers.cells], [5, 0]);
  assert.deepEqual(trafficMatrix([undefined], "").columns, []);
});

"""Everything that `why` can say, each sentence by its name, so that other languages can say the same."""

from typing import Any

from tidings.model.sentence import Sentence, sentence

ANSWERS = {
    # events
    "accepted": "It was accepted.",
    "not_routed_yet": "It has not been routed yet.",
    "undone": "No such event: the transaction that drew this number was undone, or the event has been removed.",
    "not_committed": "No such event: nobody has committed one under this number.",
    "watched": "Router {router} watches for it and routes it as soon as it appears.",
    "may_still_come": "Its number was drawn by a transaction that may still be open. Other events do not wait for it.",
    "open_session": "Session {pid} ({application}) has had a transaction open that writes events for {seconds} s.",
    "no_name": "no name",
    "to_a_task": "It was routed, to a task.",
    "nothing_to_deliver": "It was routed, and nothing is to be delivered.",
    "not_over": "{waiting} of its {all} deliveries are not over yet.",
    "all_over": "All of its deliveries are over: {all}.",
    "no_router": "No router covers the domain {domain}.",
    "late": "It was committed late; router {router} will find it within a pass.",
    "router_at": "Router {router} has come to event {position}.",
    "router_passed": "Router {router} has passed it at {position} without a decision. That must not be.",
    "gate_never_opened": "The gate {gate} was never opened.",
    "gate_closed": "The gate {gate} was closed by {who}.",
    "gate_closed_why": "The gate {gate} was closed by {who}: {reason}",
    "somebody": "somebody",
    # what routers decided
    "route": "route {id}",
    "router": "router {name}",
    "left_out": " ({detail})",
    "sent_task": "By {by} it became {count} task{left_out}.",
    "sent_deliveries": "By {by} it goes to {count} of the subscriptions{left_out}.",
    "dry_run_task": "By {by}, a dry run, it would be {count} task{left_out}.",
    "dry_run_deliveries": "By {by}, a dry run, it would be {count} deliveries{left_out}.",
    "disabled": "Its route, {by}, is switched off.",
    "no_route": "No route matched it.",
    "no_subscription": "By {by} nobody was to get it: no verified and active subscription matched{left_out}.",
    "skipped": "By {by} it was skipped: {reason}.",
    "failed": "It could not be routed by {by}: {reason}",
    # tasks
    "task_done": "Done: {type}.",
    "task_given_up": "Given up: {type}.",
    "task_under_way": "Run {run} of {type} is under way.",
    "task_waits": "Waits to be run: {type}.",
    "last_sign": "Worker {worker} gave its last sign of life.",
    "run_failed": "Run {run} of {runs} failed: {result}",
    "due_in": "It is due in {span}, at {at}.",
    "waits_for_handler": "It waits for a {process} that handles {type} and has a free slot.",
    # deliveries
    "delivered": "Delivered to subscription {id}, at attempt {attempt}.",
    "given_up": "Given up to subscription {id}: {error}.",
    "under_way": "Attempt {attempt} to subscription {id} is under way.",
    "waits": "Waits to be sent to subscription {id}.",
    "before": "Before it went right: {error}.",
    "after": "After {count} of {limit} attempts.",
    "requeued": "It was requeued as saga {id}.",
    "attempt_failed": "Attempt {attempt} of {limit} failed: {error}.",
    "next_due_in": "The next attempt is due in {span}, at {at}.",
    "subscription_missing": "Its subscription is not there. That must not be.",
    "paused": "Subscription {id} was paused.",
    "paused_by": "Subscription {id} was paused by {who}.",
    "paused_by_why": "Subscription {id} was paused by {who} ({reason}).",
    "inactive": "Subscription {id} is not active.",
    "unverified": "Subscription {id} is not verified.",
    "window": "At most {window} of its subscription are sent at a time; it waits for its turn.",
    "window_after": "At most {window} of its subscription are sent at a time, after {failures} failures in a row;"
    " it waits for its turn.",
    "job_missing": "It has no job. That must not be.",
    "reported": "The worker reported {outcome}; the orchestrator takes it in next.",
    "success": "success",
    "leased": "Worker {worker} has it until {at}, {span} from now.",
    "lease_ended": "The lease of worker {worker} ended without a result.",
    "given_back": "A worker gave it back unsent; it may be claimed again in {span}.",
    "waits_for_worker": "It waits for a worker with a free slot.",
    # all of them
    "is_due": "It is due.",
    "is_over": "It is over.",
    "no_process": "No {process} is running.",
}


def say(name: str, /, **values: Any) -> Sentence:
    return sentence(ANSWERS, name, values)

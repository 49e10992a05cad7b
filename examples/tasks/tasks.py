from dataclasses import dataclass

import tidings


@dataclass
class Mail:
    to: str
    order: int


@tidings.task("EMAIL_SEND", concurrency=10, timeout=30)
def send_mail(mail: Mail, context: tidings.TaskContext) -> None:
    if not mail.to:
        raise tidings.Fail("there is no address")  # never: no retry
    if context.attempt == 1 and mail.order == 13:
        raise tidings.Retry("the mail server is busy", after=1)  # later; counts as a retry
    print(f"mail to {mail.to} about order {mail.order}", flush=True)

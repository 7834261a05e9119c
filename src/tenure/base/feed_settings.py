"""The settings of changefeeds' sinks: where a node may send messages to, and how long a send may take.

Walk: `base.settings` lists them; `changefeed.sinks` asks for their values.
"""

from tenure.base.setting_kinds import BOOL, DURATION, NAMES, NETWORKS, PORTS
from tenure.base.setting_values import AnySetting, Setting

SINK_TIMEOUT = Setting(
    name="changefeed.sink_timeout",
    kind=DURATION,
    default=10.0,
    # A node session lasts longer than a send under it may: see `changefeed.sinks.send_window`.
    lower=0.1,
    upper=600.0,
    description="How long one send to a webhook or to Kafka may take, at most a quarter of liveness.ttl.",
)

WEBHOOK_HTTP = Setting(
    name="changefeed.webhook.http",
    kind=BOOL,
    default=False,
    description="Whether webhooks may be http:// as well, which anybody on the way can read and change.",
)

WEBHOOK_HOSTS = Setting(
    name="changefeed.webhook.hosts",
    kind=NAMES,
    default="*",
    description="The hosts that webhooks may name, such as hooks.example.com, *.example.org; * is any.",
)

WEBHOOK_NETWORKS = Setting(
    name="changefeed.webhook.networks",
    kind=NETWORKS,
    default="",
    description="Networks that webhooks may be in besides the public internet: private ones, this machine.",
)

WEBHOOK_PORTS = Setting(
    name="changefeed.webhook.ports",
    kind=PORTS,
    default="443, 8443",
    description="The ports that webhooks may have; http:// needs 80 or another one.",
)

KAFKA_BROKERS = Setting(
    name="changefeed.kafka.brokers",
    kind=NAMES,
    default="",
    description="The brokers that changefeeds may name, as host:port; * is any, an empty list none.",
)

FEED_SETTINGS: tuple[AnySetting, ...] = (
    SINK_TIMEOUT,
    WEBHOOK_HTTP,
    WEBHOOK_HOSTS,
    WEBHOOK_NETWORKS,
    WEBHOOK_PORTS,
    KAFKA_BROKERS,
)

// The parts of the bootstrap configuration, each read from its map.
#pragma once

#include "config/bootstrap.h"
#include "config/reader.h"

namespace stint::config {

void read_proxy(MapReader reader, Proxy& out);
void read_decision(MapReader reader, DecisionService& out);
void read_admin(MapReader reader, Admin& out);
void read_observability(MapReader reader, Observability& out);
void read_ratelimit(MapReader reader, RateLimit& out);
// `in_use`: the counters live there.
void read_redis(MapReader reader, bool in_use, std::optional<Redis>& out);
// `chosen`: the only source of resources.
void read_etcd(MapReader reader, bool chosen, std::optional<Etcd>& out);
void read_upstream(MapReader reader, Upstream& out);
void read_shutdown(MapReader reader, Shutdown& out);

// `enabled`: also the key of that name; null: there is none.
void read_client_tls(MapReader reader, ClientTls& out, bool* enabled = nullptr);

}  // namespace stint::config

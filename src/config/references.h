// What ties rows together: names that must differ, and names that must be there.
#pragma once

#include <string_view>
#include <vector>

#include "config/rows.h"

namespace stint::config {

struct Drafts {
  std::vector<Draft<ProviderKey>> provider_keys{};
  std::vector<Draft<Model>> models{};
  std::vector<Draft<ApiKey>> api_keys{};
  std::vector<Draft<Route>> routes{};
  std::vector<PolicyDraft> policies{};
};

// Reports ids, names and keys that two rows share.
void check_distinct(Drafts& drafts);

// Turns names into ids (provider keys of models, API keys of policies) and fills in what follows
// from another row. Warns about references to what is not there.
void resolve(Drafts& drafts);

}  // namespace stint::config

#include "admission/learned_outputs.h"

#include "base/hash.h"

namespace stint::admission {
namespace {

constexpr std::int64_t kUnit = 16;
constexpr std::int64_t kWeight = 8;

}  // namespace

LearnedOutputs::LearnedOutputs(std::uint64_t hash_seed) : hash_seed_(hash_seed) {}

std::uint64_t LearnedOutputs::caller(std::optional<std::string_view> api_key,
                                     std::optional<std::string_view> model) const noexcept {
  // Hashed one with the other as the seed: no joint of the texts for two pairs to meet at. An
  // absent text differs from an empty one.
  const std::uint64_t first = api_key ? base::hash(*api_key, hash_seed_) : hash_seed_;
  const std::uint64_t both = model ? base::hash(*model, first) : first + 1;
  return both == 0 ? 1 : both;
}

std::optional<std::int64_t> LearnedOutputs::mean(std::uint64_t caller) const {
  const Shelf& shelf = shelves_[shelf_of(caller)];
  const base::MutexLock lock(shelf.mutex);
  if (shelf.places.empty()) return std::nullopt;
  const Place& place = shelf.places[place_of(caller)];
  if (place.caller != caller) return std::nullopt;
  return (place.mean + kUnit - 1) / kUnit;
}

void LearnedOutputs::learn(std::uint64_t caller, std::int64_t output_tokens) {
  Shelf& shelf = shelves_[shelf_of(caller)];
  const base::MutexLock lock(shelf.mutex);
  if (shelf.places.empty()) shelf.places.resize(kPlaces);
  Place& place = shelf.places[place_of(caller)];
  const std::int64_t answer = output_tokens * kUnit;  // at most 2^57
  if (place.caller != caller) {
    place = {caller, answer};
  } else {
    place.mean += (answer - place.mean) / kWeight;
  }
}

}  // namespace stint::admission

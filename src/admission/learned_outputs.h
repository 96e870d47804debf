// How long answers usually are: the mean output of each API key and model, learned from commits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace stint::admission {

// A fixed number of places; a caller that hashes to another's place takes it. Forgetting costs
// accuracy only: the next answer is expected to be as long as that of a stranger.
// The mean is exponential: each answer counts an eighth. Integers, in sixteenths of a token.
// Thread rule: any thread.
class LearnedOutputs {
 public:
  explicit LearnedOutputs(std::uint64_t hash_seed);

  // Names a caller; never 0.
  [[nodiscard]] std::uint64_t caller(std::optional<std::string_view> api_key,
                                     std::optional<std::string_view> model) const noexcept;

  // Rounded up. Absent: nothing is known.
  [[nodiscard]] std::optional<std::int64_t> mean(std::uint64_t caller) const;
  void learn(std::uint64_t caller, std::int64_t output_tokens);

 private:
  static constexpr std::size_t kShelves = 64;
  static constexpr std::size_t kPlaces = 256;  // of each shelf

  struct Place {
    std::uint64_t caller = 0;
    std::int64_t mean = 0;
  };
  struct Shelf {
    mutable base::Mutex mutex;
    std::vector<Place> places STINT_GUARDED_BY(mutex);  // made when first used
  };

  [[nodiscard]] static std::size_t shelf_of(std::uint64_t caller) noexcept { return caller >> 58; }
  [[nodiscard]] static std::size_t place_of(std::uint64_t caller) noexcept {
    return (caller >> 40) % kPlaces;
  }

  std::uint64_t hash_seed_;
  std::array<Shelf, kShelves> shelves_;
};

}  // namespace stint::admission

// Random numbers that nobody can guess, behind an interface so that tests can choose them.
#pragma once

#include <cstdint>

namespace stint::base {

// Thread rule: any thread.
class Entropy {
 public:
  virtual ~Entropy() = default;
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

// The operating system's source (std::random_device). Slow: for seeds and prefixes.
[[nodiscard]] Entropy& system_entropy() noexcept;

// The same numbers in every run; for tests only.
class FixedEntropy final : public Entropy {
 public:
  explicit FixedEntropy(std::uint64_t first = 1) noexcept : next_(first) {}
  [[nodiscard]] std::uint64_t next() override { return next_++; }

 private:
  std::uint64_t next_;
};

}  // namespace stint::base

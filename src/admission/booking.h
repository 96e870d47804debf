// What an admission remembers from the question to the settlement.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "policy/table.h"
#include "stint/limiter.h"
#include "store/rate_store.h"

namespace stint::admission {

class LimiterCore;

enum class Settlement : std::uint8_t { commit, release, cancel };

// Lies still from its making on: the store and the lease keeper point into it.
struct Booking {
  LimiterCore* core = nullptr;
  std::shared_ptr<const policy::Table> table;  // the policies that decide and settle it
  policy::Table::Matches policies;             // those that apply; one bucket each in `record`
  std::string text;                            // what the keys in `record` point to
  store::AdmissionRecord record;
  std::uint64_t caller = 0;  // whose mean output this one teaches (LearnedOutputs)
  bool teaches = false;
  bool wants_slot = false;  // asks for a slot of a concurrency limit
  // Whom to tell, kept here so that what the store is given to call is small.
  std::move_only_function<void(Result<Admission>)> admitted;
  std::move_only_function<void(Result<Decision>)> peeked;
  std::move_only_function<void(Result<void>)> settled;

  // The lease keeper's; guarded by its mutex.
  boost::intrusive::list_member_hook<> hook;
  Duration renewal_due{0};
  bool renewing = false;
  std::move_only_function<void()> after_renewal;
};

// What of the admission is to stay, written into the record's slots.
void write_actuals(Booking& booking, Settlement how, const Usage& usage) noexcept;

// The answer to the caller, from the record that came back from the store.
[[nodiscard]] Decision make_decision(const Booking& booking);

}  // namespace stint::admission

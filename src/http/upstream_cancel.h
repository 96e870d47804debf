// Inside of UpstreamCancel: the calls that it ends. For the .cc files of the upstream client.
#pragma once

#include <functional>
#include <vector>

#include "http/upstream.h"

namespace stint::http {

class CancelHook;

struct UpstreamCancel::Impl {
  bool cancelled = false;
  std::vector<CancelHook*> hooks{};
};

// What to do when the call is cancelled, as long as it lives; at once if it is cancelled already.
class CancelHook {
 public:
  // `on_cancel` is called once at most and must not throw. It may destroy this hook and others.
  CancelHook(UpstreamCancel& cancel, std::move_only_function<void()> on_cancel);
  ~CancelHook();
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;

 private:
  friend class UpstreamCancel;
  UpstreamCancel::Impl* cancel_;  // null: cancelled, or the UpstreamCancel has ended
  std::move_only_function<void()> on_cancel_;
};

}  // namespace stint::http

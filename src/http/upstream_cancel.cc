#include "http/upstream_cancel.h"

#include <utility>

namespace stint::http {

UpstreamCancel::UpstreamCancel() : impl_(std::make_unique<Impl>()) {}

UpstreamCancel::~UpstreamCancel() {
  for (CancelHook* hook : impl_->hooks) hook->cancel_ = nullptr;
}

void UpstreamCancel::cancel() noexcept {
  impl_->cancelled = true;
  // One at a time, because a hook may take others away.
  while (!impl_->hooks.empty()) {
    CancelHook* hook = impl_->hooks.back();
    impl_->hooks.pop_back();
    hook->cancel_ = nullptr;
    auto on_cancel = std::move(hook->on_cancel_);
    on_cancel();
  }
}

bool UpstreamCancel::cancelled() const noexcept { return impl_->cancelled; }

CancelHook::CancelHook(UpstreamCancel& cancel, std::move_only_function<void()> on_cancel)
    : cancel_(cancel.cancelled() ? nullptr : &cancel.impl()), on_cancel_(std::move(on_cancel)) {
  if (cancel_ != nullptr) {
    cancel_->hooks.push_back(this);
  } else {
    on_cancel_();
  }
}

CancelHook::~CancelHook() {
  if (cancel_ != nullptr) std::erase(cancel_->hooks, this);
}

}  // namespace stint::http

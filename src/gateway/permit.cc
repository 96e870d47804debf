#include "gateway/permit.h"

#include <iterator>
#include <memory>

namespace stint::gateway {

bool Permit::add(Admission&& admission) {
  const bool admitted = admission.admitted();
  if (first_) {
    first_ = false;
    decision_ = std::move(admission.decision);
    early_ = std::move(admission.reservation);
    return admitted;
  }
  Decision& next = admission.decision;
  if (!admitted) {
    if (early_.holds()) early_.cancel(store_->settlement());
    store_->settlements_sent();
    // The limits that refused; those of the first step stand as before.
    given_back_ = std::move(decision_.limits);
    early_texts_ = std::move(decision_.policies);
    decision_ = std::move(next);
    return false;
  }
  append(std::move(next));
  late_ = std::move(admission.reservation);
  return true;
}

void Permit::look(Decision&& second) {
  if (second.outcome != Outcome::undecided) append(std::move(second));
}

void Permit::append(Decision&& next) {
  decision_.limits.insert(decision_.limits.end(), std::make_move_iterator(next.limits.begin()),
                          std::make_move_iterator(next.limits.end()));
  // The texts of both steps' limits must live on.
  using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  decision_.policies =
      std::make_shared<const Both>(std::move(decision_.policies), std::move(next.policies));
}

void Permit::commit(const Usage& usage) {
  if (early_.holds()) early_.commit(usage, store_->settlement());
  if (late_.holds()) late_.commit(usage, store_->settlement());
  store_->settlements_sent();
}

void Permit::release() {
  if (early_.holds()) early_.release(store_->settlement());
  if (late_.holds()) late_.release(store_->settlement());
  store_->settlements_sent();
}

}  // namespace stint::gateway

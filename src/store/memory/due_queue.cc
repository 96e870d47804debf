#include "store/memory/due_queue.h"

#include "store/memory/grow.h"

namespace stint::store {

void DueQueue::push(std::uint32_t slot, std::uint32_t due) {
  if (slot >= places_.size()) {
    grow(places_, slot + std::size_t{1});
    places_.resize(slot + std::size_t{1});
  }
  grow(heap_, heap_.size() + 1);
  heap_.push_back({due, slot});
  places_[slot] = static_cast<std::uint32_t>(heap_.size() - 1);
  sift(heap_.size() - 1);
}

void DueQueue::move(std::uint32_t slot, std::uint32_t due) noexcept {
  heap_[places_[slot]].due = due;
  sift(places_[slot]);
}

void DueQueue::remove(std::uint32_t slot) noexcept {
  const std::size_t place = places_[slot];
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  put(place, last);
  sift(place);
}

void DueQueue::put(std::size_t place, const Entry& entry) noexcept {
  heap_[place] = entry;
  places_[entry.slot] = static_cast<std::uint32_t>(place);
}

void DueQueue::sift(std::size_t place) noexcept {
  const Entry entry = heap_[place];
  while (place > 0 && heap_[(place - 1) / 2].due > entry.due) {
    put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].due < heap_[child].due) ++child;
    if (heap_[child].due >= entry.due) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, entry);
}

}  // namespace stint::store

// Room in a vector that grows by a quarter, not by twice: a million buckets pay for what they use.
#pragma once

#include <cstddef>
#include <vector>

namespace stint::store {

template <class T>
void grow(std::vector<T>& vector, std::size_t wanted) {
  if (wanted <= vector.capacity()) return;
  vector.reserve(wanted + wanted / 4 + 16);
}

}  // namespace stint::store

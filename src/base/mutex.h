// std::mutex with the annotations of Clang's thread-safety analysis.
#pragma once

#include <mutex>

#if defined(__clang__)
#define STINT_ANNOTATE(x) __attribute__((x))
#else
#define STINT_ANNOTATE(x)
#endif

#define STINT_GUARDED_BY(mutex) STINT_ANNOTATE(guarded_by(mutex))
#define STINT_REQUIRES(...) STINT_ANNOTATE(requires_capability(__VA_ARGS__))
#define STINT_NO_ANALYSIS STINT_ANNOTATE(no_thread_safety_analysis)

namespace stint::base {

class STINT_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() STINT_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() STINT_ANNOTATE(release_capability()) { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() STINT_ANNOTATE(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }

 private:
  std::mutex mutex_;
};

class STINT_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) STINT_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() STINT_ANNOTATE(release_capability()) { mutex_.unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace stint::base

// ATTEND_TEST_SANITIZED: 1 where a sanitizer has put its own memory in the place of malloc's.
#ifndef ATTEND_TESTS_SANITIZED_H_
#define ATTEND_TESTS_SANITIZED_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTEND_TEST_SANITIZED 1
#elif defined(__has_feature)
#define ATTEND_TEST_SANITIZED                                             \
  (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
   __has_feature(memory_sanitizer))
#else
#define ATTEND_TEST_SANITIZED 0
#endif

#endif  // ATTEND_TESTS_SANITIZED_H_

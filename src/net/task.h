// What coroutines of stint return, and on what they run.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace stint::net {

// The concrete type, not any_io_executor: cheaper to compile and to run.
using Executor = boost::asio::io_context::executor_type;

template <class T = void>
using Task = boost::asio::awaitable<T, Executor>;

}  // namespace stint::net

/* Tells the thread sanitizer what the standard library orders.
 *
 * The library is not rebuilt for the sanitizer, so the loads and stores compiled into it are not
 * seen: a lock that a thread had to wait for seems to order nothing. The linker's --wrap leads each
 * such function here first. The names come from the command line, since they differ from compiler to
 * compiler. Arguments and results are passed on unread: the first argument is what orders, or the
 * condition variable, whose second argument is the mutex. */

extern void __tsan_acquire(void *);
extern void __tsan_release(void *);

typedef __int128 result;
#define PARAMETERS long a, long b, long c, long d, long e, long f
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

#define WRAP(function, symbol, before, after)                             \
    result real_##function(PARAMETERS) __asm__("__real_" TEXT(symbol));   \
    result wrap_##function(PARAMETERS) __asm__("__wrap_" TEXT(symbol));   \
    result wrap_##function(PARAMETERS) {                                  \
        before;                                                           \
        result value = real_##function(a, b, c, d, e, f);                 \
        after;                                                            \
        return value;                                                     \
    }

#define ACQUIRE(address) __tsan_acquire((void *)(address))
#define RELEASE(address) __tsan_release((void *)(address))

/* The count of running threads is one of the words of a scope, wherever the compiler put it. */
static void release_scope(long scope) {
    for (long word = 0; word < 4; word++) {
        RELEASE(scope + 8 * word);
    }
}

WRAP(mutex_lock, MUTEX_LOCK, , ACQUIRE(a))
WRAP(rwlock_read, RWLOCK_READ, , ACQUIRE(a))
WRAP(rwlock_write, RWLOCK_WRITE, , ACQUIRE(a))
WRAP(condvar_wait, CONDVAR_WAIT, RELEASE(b), ACQUIRE(b))
WRAP(condvar_wait_timeout, CONDVAR_WAIT_TIMEOUT, RELEASE(b), ACQUIRE(b))
WRAP(once_call, ONCE_CALL, , (ACQUIRE(a), RELEASE(a)))
WRAP(scope_thread_end, SCOPE_THREAD_END, release_scope(a), )

/* The last owner of an Arc takes it over from the others by a fence, which the sanitizer does not
 * model. The decrement in front of that fence acquires instead. */
enum { ORDER_RELEASE = 3, ORDER_ACQUIRE_RELEASE = 4 };

long __real___tsan_atomic64_fetch_sub(volatile long *address, long value, int order);

long __wrap___tsan_atomic64_fetch_sub(volatile long *address, long value, int order) {
    int stronger = order == ORDER_RELEASE ? ORDER_ACQUIRE_RELEASE : order;
    return __real___tsan_atomic64_fetch_sub(address, value, stronger);
}

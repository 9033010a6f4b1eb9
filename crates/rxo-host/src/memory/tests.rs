use super::*;

/// Returns the memory of a host over a device whose queue has no limit.
fn memory(bytes: u64) -> Memory {
    Memory::new(bytes, Queue::new(None, 1_500, 16_384))
}

/// Returns the share of a connection that holds data in both directions; `None` if there is not enough
/// memory.
fn awake(memory: &Memory, config: &Config) -> Option<Share> {
    let mut share = memory.reserve(config)?;
    let is_awake = memory.wake_sending(&mut share) && memory.wake_receiving(&mut share);
    is_awake.then_some(share)
}

/// Idle connections take only a fixed amount of memory, and an active one gets the buffers that it offers,
/// until too many are active. A connection that could reserve no buffer is not accepted.
#[test]
fn many_can_be_idle_and_not_all_can_wake() {
    let (config, memory) = (Config::default(), memory(2 << 30));
    let mut shares: Vec<_> = std::iter::from_fn(|| memory.reserve(&config)).collect();
    assert!(shares.len() > 200_000, "{} connections", shares.len());
    assert!(memory.left() >= 160 << 10, "{} left", memory.left());
    memory.release(shares.pop().unwrap());
    shares.drain(100_000..).for_each(|share| memory.release(share));
    let left = memory.left();
    let woken = shares.iter_mut().map(|it| memory.wake_receiving(it)).filter(|it| *it).count();
    assert!((2_000..3_000).contains(&woken), "{woken} of {}", shares.len());
    let (awake, asleep) = (0, shares.len() - 1);
    assert!(memory.admits(&mut shares[awake], false));
    assert_eq!(memory.refused(), 0);
    assert!(memory.admits(&mut shares[asleep], true), "a little is always taken");
    assert!(!memory.admits(&mut shares[asleep], false));
    assert_eq!(memory.refused(), 1);
    let nothing = Directions::default();
    shares.iter_mut().for_each(|share| memory.rest(share, nothing));
    assert_eq!(memory.left(), left);
    assert!(memory.admits(&mut shares[asleep], false));
    shares.into_iter().for_each(|share| memory.release(share));
    assert_eq!(memory.left(), 2 << 30);
}

/// A direction that carries data keeps its memory when the other direction becomes idle.
#[test]
fn each_direction_rests_by_itself() {
    let (config, memory) = (Config::default(), memory(2 << 30));
    let mut share = memory.reserve(&config).unwrap();
    assert!(memory.wake_sending(&mut share));
    let sending = memory.left();
    assert!(memory.wake_receiving(&mut share) && memory.left() < sending);
    memory.rest(&mut share, Directions { sending: true, receiving: false });
    assert!(memory.left() == sending && share.sends() && !share.receives());
    memory.rest(&mut share, Directions { sending: false, receiving: true });
    assert!(share.has_only_fixed());
    assert_eq!(memory.left(), (2 << 30) - IDLE_CONNECTION_BYTES);
}

#[test]
fn the_first_get_all_and_later_ones_less() {
    let (config, memory) = (Config::default(), memory(2 << 30));
    let shares: Vec<_> = std::iter::from_fn(|| awake(&memory, &config)).collect();
    assert_eq!(shares[0].buffers.send_bytes, config.send_buffer_bytes);
    assert_eq!(shares[1_000].buffers.receive_bytes, config.receive_buffer_bytes);
    assert!(shares.windows(2).all(|two| two[0].bytes() >= two[1].bytes()));
    let last = shares.last().unwrap();
    assert_eq!(
        (last.buffers.send_bytes, last.buffers.receive_bytes),
        (LEAST_BUFFER_BYTES, LEAST_BUFFER_BYTES)
    );
    assert!((3_000..5_000).contains(&shares.len()), "{} connections", shares.len());
    assert!(memory.left() < last.bytes(), "{} left", memory.left());
    shares.into_iter().for_each(|share| memory.release(share));
    assert_eq!(memory.left(), 2 << 30);
}

#[test]
fn small_buffers_stay_as_they_are() {
    let small = Config { send_buffer_bytes: 64, receive_buffer_bytes: 1_000, ..Config::default() };
    let config = Arc::new(small);
    let share = memory(1 << 20).reserve(&config).unwrap();
    assert_eq!((share.buffers.send_bytes, share.buffers.receive_bytes), (64, 1_000));
    assert_eq!(share.apply(&config), config);
}

/// Growing connections leave a quarter of the memory to new ones, and each gets a part of the rest.
#[test]
fn growth_leaves_a_quarter() {
    let (config, memory) = (Config::default(), memory(1 << 30));
    let mut shares: Vec<_> = (0..500).map(|_| awake(&memory, &config).unwrap()).collect();
    let wanted = Buffers { send_bytes: 4 << 20, receive_bytes: 6 << 20 };
    for _ in 0..10 {
        shares.iter_mut().for_each(|share| {
            memory.grow(share, wanted, None);
        });
    }
    assert!(memory.left() >= 256 << 20 && !memory.is_short(), "{} left", memory.left());
    // Parts that are too small to justify moving data remain free.
    assert!(memory.left() < 280 << 20, "{} left", memory.left());
    assert!(shares.iter().all(|share| share.buffers != share.initial));
    for share in &mut shares {
        while let Some(half) = share.halved() {
            memory.shrink(share, half);
        }
    }
    shares.into_iter().for_each(|share| memory.release(share));
    assert_eq!(memory.left(), 1 << 30);
}

/// After the peer has acknowledged the FIN, the connection has no send buffer, but its share still counts
/// one. The other direction can grow nevertheless, within the memory for growth.
#[test]
fn a_direction_that_is_done_hinders_no_other() {
    let (config, memory) = (Config::default(), memory(16 << 20));
    let mut share = awake(&memory, &config).unwrap();
    let first = Buffers { send_bytes: 2 << 20, receive_bytes: 0 };
    while memory.grow(&mut share, first, None).is_some() {}
    let before = share.buffers;
    let wanted = Buffers { send_bytes: 0, receive_bytes: before.receive_bytes + (1 << 20) };
    let granted = memory.grow(&mut share, wanted, None).unwrap();
    assert_eq!(granted.send_bytes, before.send_bytes);
    assert!(granted.receive_bytes > before.receive_bytes, "{granted:?}");
    while memory.grow(&mut share, Buffers { receive_bytes: 64 << 20, ..wanted }, None).is_some() {}
    assert!(!memory.is_short(), "{} left", memory.left());
    memory.shrink(&mut share, Buffers { send_bytes: 0, receive_bytes: 1 });
    assert_eq!(share.halved(), None);
}

/// Growth moves data, so a small growth is refused.
#[test]
fn small_growth_is_refused() {
    let (config, memory) = (Config::default(), memory(1 << 30));
    let mut share = awake(&memory, &config).unwrap();
    let Buffers { send_bytes, receive_bytes } = share.buffers;
    let little = Buffers { send_bytes: send_bytes + send_bytes / 8 - 1, receive_bytes };
    assert_eq!(memory.grow(&mut share, little, None), None);
    let enough = Buffers { send_bytes: send_bytes + send_bytes / 8, receive_bytes };
    assert_eq!(memory.grow(&mut share, enough, None), Some(enough));
}

#[test]
fn all_or_nothing() {
    let config = Config::default();
    assert!(memory(768 << 10).reserve_all(&config).is_none());
    assert_eq!(memory(1 << 30).reserve_all(&config), awake(&memory(1 << 30), &config));
}

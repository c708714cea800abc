/-! ## The promise

Decisions `x`, data `s` and losses `f` of any sequence; `hf` is the convexity of the losses at the comparator `u`, `hproj` the rule:
`x (t + 1)` is the point of the domain nearest to `x t - c / √(t + 1) • g t`. -/

theorem regret (x g : ℕ → Decision) (s : ℕ → Data) (f : ℕ → Decision → ℝ) (u : Decision)
    (hu : u ∈ domain) (hs : ∀ t i, s t i ∈ Set.Icc (least i) (most i)) (hx : ∀ t, x t ∈ domain)
    (hg : ∀ t i, g t i = gradient (x t) (s t) i)
    (hf : ∀ t, f t (x t) - f t u ≤ inner ℝ (g t) (x t - u))
    (hproj : ∀ t : ℕ, ‖x t - (√((t : ℝ) + 1) / c)⁻¹ • g t - x (t + 1)‖
      = ⨅ w : domain, ‖x t - (√((t : ℝ) + 1) / c)⁻¹ • g t - w‖) :
    ∑ t ∈ range T, (f t (x t) - f t u) ≤ R := by
  obtain ⟨n, hn⟩ : ∃ n, T = n + 1 := ⟨T - 1, by norm_num [T]⟩
  have hG : ∀ t, ‖g t‖ ≤ G := fun t =>
    norm_le_of_entries (g t) slope G G_nonneg (fun i => by rw [hg t i]; exact entries ⟨hx t, hs t⟩ i) slope_le_G
  have hD : ∀ t, ‖x t - u‖ ≤ D := fun t => diameter (hx t) hu
  have hc : 0 < c := c_pos
  have mono : Monotone fun t : ℕ => √((t : ℝ) + 1) / c := fun a b h => by
    have h' : (a : ℝ) ≤ b := by exact_mod_cast h
    exact div_le_div_of_nonneg_right (Real.sqrt_le_sqrt (by linarith)) hc.le
  have pos : ∀ t : ℕ, 0 < √((t : ℝ) + 1) / c := fun t => div_pos (Real.sqrt_pos.2 (by positivity)) hc
  have main := regret_of_steps (fun _ => domain) (fun _ => domain_convex) x g u
    (fun t : ℕ => √((t : ℝ) + 1) / c) D mono (fun t => (pos t).le) (fun t h => absurd h (pos t).ne')
    (fun t => hx (t + 1)) hproj (fun _ => hu) hD n
  have ones := sum_div_sqrt_le (fun _ => 1) (fun _ => zero_le_one) (n + 1)
  simp only [sum_const, card_range, nsmul_eq_mul, mul_one, Nat.cast_add, Nat.cast_one] at ones
  have each : ∀ t ∈ range (n + 1), ‖g t‖ ^ 2 / (2 * (√((t : ℝ) + 1) / c))
      ≤ c * G ^ 2 / 2 * (1 / √((t : ℝ) + 1)) := fun t _ => by
    have h := pow_le_pow_left₀ (norm_nonneg _) (hG t) 2
    have q : 0 < 2 * (√((t : ℝ) + 1) / c) := mul_pos two_pos (pos t)
    refine (div_le_div_of_nonneg_right h q.le).trans (le_of_eq ?_)
    ring
  have steps := sum_le_sum each
  rw [← mul_sum] at steps
  have factor : 0 ≤ c * G ^ 2 / 2 := by positivity
  have scaled := mul_le_mul_of_nonneg_left ones factor
  have root : √((n : ℝ) + 1) ≤ r := by
    refine Real.sqrt_le_iff.2 ⟨r_nonneg, ?_⟩
    have h : ((n : ℝ) + 1) = (T : ℝ) := by rw [hn]; push_cast; ring
    rw [h]
    exact T_le_square
  have convex := sum_le_sum fun t (_ : t ∈ range (n + 1)) => hf t
  have e : √((n : ℝ) + 1) / c * D ^ 2 / 2 + c * G ^ 2 / 2 * (2 * √((n : ℝ) + 1))
      = √((n : ℝ) + 1) * (D ^ 2 / (2 * c) + c * G ^ 2) := by ring
  have front : 0 ≤ D ^ 2 / (2 * c) + c * G ^ 2 := by positivity
  have last := mul_le_mul_of_nonneg_right root front
  rw [hn]
  linarith [total_le_R]

end Promise
